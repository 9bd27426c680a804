#include "model/attention.h"

#include <array>
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

// The four layers that read h, with their outputs: queries and keys [T, C], values of the token
// itself and of the token before [T, nk d / 2].
std::array<LinearPart, 4> projections(const ModelConfig& c, const AttentionParameters& w,
                                      const Tensor& qk, const Tensor& current,
                                      const Tensor& delayed) {
  const auto part = [](const Tensor& y, const Parameter* p) {
    return LinearPart{y, p->matrix(), p->gradient};
  };
  return {part(query_part(c, qk), w.q_proj), part(key_part(c, qk), w.k_proj),
          part(current, w.v_proj_current), part(delayed, w.v_proj_delayed)};
}

// saved.qk0, and saved.v = concat(Wv_current h_t, Wv_delayed h_{t-1}).
void project_forward(Context& ctx, const ModelConfig& c, const AttentionParameters& w,
                     const AttentionSaved& saved, const Tensor& h, const AttentionInputs& in,
                     Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::projections);
  ArenaScope scope(scratch);
  const Tensor delayed = scratch.tensor(h.dtype, {h.rows(), c.key_channels() / 2});
  linear_forward(ctx, projections(c, w, saved.qk0, current_part(c, saved.v), delayed), h);
  const Tensor previous =
      in.memory
          ? in.memory->delayed_value.reshaped({in.batch->sequences().count(), delayed.columns()})
          : Tensor();
  value_shift_forward(ctx, delayed_part(c, saved.v), delayed, previous, in.batch->sequences());
  if (in.memory) history_append(ctx, in.memory->delayed_value, delayed, in.batch->sequences());
}

// saved.q and saved.k from saved.qk0.
void convolve_forward(Context& ctx, const ModelConfig& c, const AttentionParameters& w,
                      const AttentionSaved& saved, const AttentionInputs& in) {
  const Timed timed(ctx.profile, OpGroup::convolutions);
  const Ragged sequences = in.batch->sequences();
  depthwise_conv_forward(ctx, saved.depthwise, saved.qk0,
                         in.memory ? in.memory->conv_rows : Tensor(), w.depthwise->weight,
                         w.depthwise_bias->weight, sequences, c.cca_time1 - 1);
  if (in.memory) history_append(ctx, in.memory->conv_rows, saved.qk0, sequences);
  grouped_conv_forward(ctx, saved.z, saved.depthwise, w.grouped->weight, w.grouped_bias->weight,
                       sequences);
  qk_norm_rope_forward(ctx, saved.q, saved.k, saved.z, saved.qk0, w.temp->weight, in.rotary.cos,
                       in.rotary.sin, in.batch->positions(), qk_shape(c));
}

// Keys and values of these tokens take their rows in the decoder's memory.
void remember(Context& ctx, const AttentionMemory& memory, const AttentionSaved& saved,
              std::span<const AttentionSpan> spans) {
  for (const AttentionSpan& span : spans) {
    const int64_t end = span.k_begin + span.k_length, q_end = span.q_begin + span.q_length;
    convert(ctx, memory.keys.row_range(end - span.q_length, end),
            saved.k.row_range(span.q_begin, q_end));
    convert(ctx, memory.values.row_range(end - span.q_length, end),
            saved.v.row_range(span.q_begin, q_end));
  }
}

// dqk0 [T, C] A: overwritten, from dq and dk.
void convolve_backward(Context& ctx, const ModelConfig& c, const AttentionParameters& w,
                       const Tensor& dqk0, const Tensor& dq, const Tensor& dk,
                       const AttentionSaved& saved, const AttentionInputs& in, Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::convolutions);
  const Ragged sequences = in.batch->sequences();
  const Shape shape{dq.rows(), c.qk_channels()};
  ArenaScope scope(scratch);
  const Tensor dz = scratch.tensor(DType::f32, shape);
  const Tensor ddepthwise = scratch.tensor(DType::f32, saved.depthwise.shape);
  const Tensor mean = dqk0.dtype == DType::f32 ? dqk0 : scratch.tensor(DType::f32, shape);
  qk_norm_rope_backward(ctx, dz, mean, w.temp->gradient, dq, dk, saved.z, saved.qk0, w.temp->weight,
                        in.rotary.cos, in.rotary.sin, in.batch->positions(), qk_shape(c));
  grouped_conv_backward(ctx, ddepthwise, w.grouped->gradient, w.grouped_bias->gradient, dz,
                        saved.depthwise, w.grouped->weight, sequences);
  depthwise_conv_backward(ctx, dqk0, w.depthwise->gradient, w.depthwise_bias->gradient, mean,
                          ddepthwise, saved.qk0, w.depthwise->weight, sequences, c.cca_time1 - 1);
}

// dh [T, D] f32: overwritten, from dqk0 and dv.
void project_backward(Context& ctx, const ModelConfig& c, const AttentionParameters& w,
                      const Tensor& dh, const Tensor& dqk0, const Tensor& dv, const Tensor& h,
                      const AttentionInputs& in, Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::projections);
  ArenaScope scope(scratch);
  const Tensor ddelayed = scratch.tensor(dv.dtype, {dv.rows(), c.key_channels() / 2});
  value_shift_backward(ctx, ddelayed, delayed_part(c, dv), in.batch->sequences());
  const auto parts = projections(c, w, dqk0, current_part(c, dv), ddelayed);
  linear_backward_input(ctx, dh, parts);
  linear_backward_weight(ctx, parts, h);
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
  project_forward(ctx, c, w, saved, h, in, scratch);
  convolve_forward(ctx, c, w, saved, in);
  {
    const Timed timed(ctx.profile, OpGroup::attention);
    if (in.memory) remember(ctx, *in.memory, saved, in.batch->spans());
    attention_forward(ctx, saved.mixed, saved.lse, saved.q, in.memory ? in.memory->keys : saved.k,
                      in.memory ? in.memory->values : saved.v, in.batch->spans(),
                      attention_shape(c, in.window));
  }
  const Timed timed(ctx.profile, OpGroup::projections);
  linear_forward(ctx, out, saved.mixed, w.o_proj->matrix());
}

void attention_backward(Context& ctx, const ModelConfig& c, const AttentionParameters& w,
                        const Tensor& dh, const Tensor& dout, const AttentionSaved& saved,
                        const Tensor& h, const AttentionInputs& in, Arena& scratch) {
  const int64_t T = h.rows();
  const DType activation = h.dtype;
  ArenaScope scope(scratch);
  const Tensor dmixed = scratch.tensor(activation, {T, c.query_channels()});
  const Tensor dq = scratch.tensor(activation, {T, c.query_channels()});
  const Tensor dk = scratch.tensor(activation, {T, c.key_channels()});
  const Tensor dv = scratch.tensor(activation, {T, c.key_channels()});
  const Tensor dqk0 = scratch.tensor(activation, {T, c.qk_channels()});
  {
    const Timed timed(ctx.profile, OpGroup::projections);
    linear_backward_input(ctx, dmixed, dout, w.o_proj->matrix().values, Into::overwrite);
    linear_backward_weight(ctx, w.o_proj->gradient, dout, saved.mixed);
  }
  {
    const Timed timed(ctx.profile, OpGroup::attention);
    attention_backward(ctx, dq, dk, dv, dmixed, saved.mixed, saved.lse, saved.q, saved.k, saved.v,
                       in.batch->spans(), attention_shape(c, in.window));
  }
  convolve_backward(ctx, c, w, dqk0, dq, dk, saved, in, scratch);
  project_backward(ctx, c, w, dh, dqk0, dv, h, in, scratch);
}

}  // namespace zaya
