#include "model/attention.h"

#include <cmath>

#include "ops/attention/attention.h"
#include "ops/cca/depthwise_conv.h"
#include "ops/cca/grouped_conv.h"
#include "ops/cca/history.h"
#include "ops/cca/qk_norm_rope.h"
#include "ops/cca/value_shift.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/linear.h"

namespace zaya {
namespace {

QkShape qk_shape(const ModelConfig& c) {
  return {c.num_attention_heads, c.num_key_value_heads, c.head_dim, c.rotary_channels()};
}

AttentionShape attention_shape(const ModelConfig& c, int64_t window) {
  return {c.num_attention_heads, c.num_key_value_heads, c.head_dim, window,
          1.0f / std::sqrt(static_cast<float>(c.head_dim))};
}

Tensor query_part(const ModelConfig& c, const Tensor& qk) {
  return qk.column_range(0, c.query_channels());
}
Tensor key_part(const ModelConfig& c, const Tensor& qk) {
  return qk.column_range(c.query_channels(), c.qk_channels());
}
Tensor current_part(const ModelConfig& c, const Tensor& v) {
  return v.column_range(0, c.key_channels() / 2);
}
Tensor delayed_part(const ModelConfig& c, const Tensor& v) {
  return v.column_range(c.key_channels() / 2, c.key_channels());
}

// v = concat(Wv_current h_t, Wv_delayed h_{t-1}).
void values_forward(Context& ctx, const ModelConfig& c, const AttentionParameters& w,
                    const Tensor& v, const Tensor& h, const AttentionInputs& in, Arena& scratch) {
  ArenaScope scope(scratch);
  const Tensor delayed = scratch.tensor(h.dtype, {h.rows(), c.key_channels() / 2});
  linear_forward(ctx, current_part(c, v), h, w.v_proj_current->compute);
  linear_forward(ctx, delayed, h, w.v_proj_delayed->compute);
  const Tensor previous =
      in.memory ? in.memory->delayed_value.reshaped({1, delayed.columns()}) : Tensor();
  value_shift_forward(ctx, delayed_part(c, v), delayed, previous, in.batch->sequences());
  if (in.memory) history_append(ctx, in.memory->delayed_value, delayed, in.batch->sequences());
}

}  // namespace

AttentionParameters attention_parameters(Parameters& parameters, int64_t block) {
  const auto find = [&](const char* name) {
    return &parameters.find(fmt::format("model.layers.{}.self_attn.{}", block, name));
  };
  return {find("qkv_proj.q_proj.weight"),
          find("qkv_proj.k_proj.weight"),
          find("qkv_proj.v_proj_current.weight"),
          find("qkv_proj.v_proj_delayed.weight"),
          find("qkv_proj.conv_qk_depthwise.weight"),
          find("qkv_proj.conv_qk_depthwise.bias"),
          find("qkv_proj.conv_qk_grouped.weight"),
          find("qkv_proj.conv_qk_grouped.bias"),
          find("qk_norm.temp"),
          find("o_proj.weight")};
}

AttentionSaved plan_attention(Arena& arena, const ModelConfig& c, DType activation, int64_t T,
                              int64_t S) {
  AttentionSaved saved;
  saved.qk0 = arena.tensor(activation, {T, c.qk_channels()});
  saved.depthwise = arena.tensor(activation, {T + S * (c.cca_time1 - 1), c.qk_channels()});
  saved.z = arena.tensor(DType::f32, {T, c.qk_channels()});
  saved.q = arena.tensor(activation, {T, c.query_channels()});
  saved.k = arena.tensor(activation, {T, c.key_channels()});
  saved.v = arena.tensor(activation, {T, c.key_channels()});
  saved.mixed = arena.tensor(activation, {T, c.query_channels()});
  saved.lse = arena.tensor(DType::f32, {T, c.num_attention_heads});
  return saved;
}

void attention_forward(Context& ctx, const ModelConfig& c, const AttentionParameters& w,
                       const Tensor& out, AttentionSaved& saved, const Tensor& h,
                       const AttentionInputs& in, Arena& scratch) {
  const Ragged sequences = in.batch->sequences();
  AttentionMemory* memory = in.memory;
  Tensor keys = saved.k, values = saved.v;  // what the queries see: these tokens', or all so far
  if (memory) {
    const AttentionSpan& span = in.batch->spans().front();
    const int64_t past = span.k_length - span.q_length;
    keys = memory->keys;
    values = memory->values;
    saved.k = keys.row_range(past, span.k_length);
    saved.v = values.row_range(past, span.k_length);
  }

  linear_forward(ctx, query_part(c, saved.qk0), h, w.q_proj->compute);
  linear_forward(ctx, key_part(c, saved.qk0), h, w.k_proj->compute);
  values_forward(ctx, c, w, saved.v, h, in, scratch);
  depthwise_conv_forward(ctx, saved.depthwise, saved.qk0, memory ? memory->conv_rows : Tensor(),
                         w.depthwise->weight, w.depthwise_bias->weight, sequences, c.cca_time1 - 1);
  if (memory) history_append(ctx, memory->conv_rows, saved.qk0, sequences);
  grouped_conv_forward(ctx, saved.z, saved.depthwise, w.grouped->weight, w.grouped_bias->weight,
                       sequences);
  qk_norm_rope_forward(ctx, saved.q, saved.k, saved.z, saved.qk0, w.temp->weight, in.rotary.cos,
                       in.rotary.sin, in.batch->positions(), qk_shape(c));
  attention_forward(ctx, saved.mixed, saved.lse, saved.q, keys, values, in.batch->spans(),
                    attention_shape(c, in.window));
  linear_forward(ctx, out, saved.mixed, w.o_proj->compute);
}

void attention_backward(Context& ctx, const ModelConfig& c, const AttentionParameters& w,
                        const Tensor& dh, const Tensor& dout, const AttentionSaved& saved,
                        const Tensor& h, const AttentionInputs& in, Arena& scratch) {
  const Ragged sequences = in.batch->sequences();
  const int64_t T = h.rows(), C = c.qk_channels();
  const DType activation = h.dtype;
  ArenaScope scope(scratch);
  const Tensor dmixed = scratch.tensor(activation, {T, c.query_channels()});
  const Tensor dq = scratch.tensor(activation, {T, c.query_channels()});
  const Tensor dk = scratch.tensor(activation, {T, c.key_channels()});
  const Tensor dv = scratch.tensor(activation, {T, c.key_channels()});
  const Tensor ddelayed = scratch.tensor(activation, {T, c.key_channels() / 2});
  const Tensor dz = scratch.tensor(DType::f32, {T, C});
  const Tensor ddepthwise = scratch.tensor(DType::f32, saved.depthwise.shape);
  const Tensor dqk0_mean = scratch.tensor(DType::f32, {T, C});
  const Tensor dqk0_conv = scratch.tensor(DType::f32, {T, C});
  const Tensor dqk0 = activation == DType::f32 ? dqk0_mean : scratch.tensor(activation, {T, C});

  linear_backward_input(ctx, dmixed, dout, w.o_proj->compute, Into::overwrite);
  linear_backward_weight(ctx, w.o_proj->gradient, dout, saved.mixed);
  attention_backward(ctx, dq, dk, dv, dmixed, saved.mixed, saved.lse, saved.q, saved.k, saved.v,
                     in.batch->spans(), attention_shape(c, in.window));
  qk_norm_rope_backward(ctx, dz, dqk0_mean, w.temp->gradient, dq, dk, saved.z, saved.qk0,
                        w.temp->weight, in.rotary.cos, in.rotary.sin, in.batch->positions(),
                        qk_shape(c));
  grouped_conv_backward(ctx, ddepthwise, w.grouped->gradient, w.grouped_bias->gradient, dz,
                        saved.depthwise, w.grouped->weight, sequences);
  depthwise_conv_backward(ctx, dqk0_conv, w.depthwise->gradient, w.depthwise_bias->gradient,
                          ddepthwise, saved.qk0, w.depthwise->weight, sequences, c.cca_time1 - 1);
  add(ctx, dqk0_mean, dqk0_conv);
  if (activation != DType::f32) convert(ctx, dqk0, dqk0_mean);
  value_shift_backward(ctx, ddelayed, delayed_part(c, dv), sequences);

  struct Projection {
    Parameter* parameter;
    Tensor dy;
  };
  Into into = Into::overwrite;
  for (const Projection& p :
       {Projection{w.q_proj, query_part(c, dqk0)}, Projection{w.k_proj, key_part(c, dqk0)},
        Projection{w.v_proj_current, current_part(c, dv)},
        Projection{w.v_proj_delayed, ddelayed}}) {
    linear_backward_input(ctx, dh, p.dy, p.parameter->compute, into);
    linear_backward_weight(ctx, p.parameter->gradient, p.dy, h);
    into = Into::add;
  }
}

}  // namespace zaya
