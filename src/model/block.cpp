#include "model/block.h"

namespace zaya {
namespace {

MergeParameters merge_parameters(Parameters& parameters, const std::string& prefix) {
  return {&parameters.find(prefix + "hidden_states_bias"),
          &parameters.find(prefix + "hidden_states_scale"),
          &parameters.find(prefix + "residual_bias"), &parameters.find(prefix + "residual_scale")};
}

Merge attention_merge(const BlockParameters& w, const BlockSaved& saved, const Tensor& x) {
  return {saved.middle, saved.attention_out, x, w.attention_merge.weights()};
}

Merge experts_merge(const BlockParameters& w, const BlockSaved& saved) {
  return {saved.out, saved.experts_out, saved.middle, w.experts_merge.weights()};
}

}  // namespace

MergeVectors MergeParameters::weights() const {
  return {hidden_bias->weight, hidden_scale->weight, residual_bias->weight, residual_scale->weight};
}

MergeVectors MergeParameters::gradients() const {
  return {hidden_bias->gradient, hidden_scale->gradient, residual_bias->gradient,
          residual_scale->gradient};
}

BlockParameters block_parameters(Parameters& parameters, int64_t block) {
  const std::string prefix = fmt::format("model.layers.{}.", block);
  return {&parameters.find(prefix + "input_layernorm.weight"),
          attention_parameters(parameters, block),
          merge_parameters(parameters, prefix + "post_attention_residual_scale."),
          &parameters.find(prefix + "post_attention_layernorm.weight"),
          experts_parameters(parameters, block),
          merge_parameters(parameters, prefix + "post_mlp_residual_scale.")};
}

BlockSaved plan_block(Arena& arena, const ModelConfig& c, DType activation, int64_t T, int64_t S) {
  const Shape rows{T}, hidden{T, c.hidden_size};
  BlockSaved saved;
  saved.input_rstd = arena.tensor(DType::f32, rows);
  saved.input_h = arena.tensor(activation, hidden);
  saved.attention = plan_attention(arena, c, activation, T, S);
  saved.attention_out = arena.tensor(activation, hidden);
  saved.middle = arena.tensor(DType::f32, hidden);
  saved.experts_rstd = arena.tensor(DType::f32, rows);
  saved.experts_h = arena.tensor(DType::f32, hidden);
  saved.experts = plan_experts(arena, c, activation, T);
  saved.experts_out = arena.tensor(activation, hidden);
  saved.out = arena.tensor(DType::f32, hidden);
  return saved;
}

void block_forward(Context& ctx, const ModelConfig& c, const BlockParameters& w, BlockSaved& saved,
                   const NormAfter& after, const Tensor& x, const Tensor& router_state,
                   const AttentionInputs& attention, Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::norms);
  attention_forward(ctx, c, w.attention, saved.attention_out, saved.attention, saved.input_h,
                    attention, scratch);
  merge_norm_forward(ctx, attention_merge(w, saved, x), saved.experts_h, saved.experts_rstd,
                     w.experts_norm->weight, c.rms_norm_eps);
  experts_forward(ctx, c, w.experts, saved.experts_out, saved.experts, saved.experts_h,
                  router_state, scratch);
  merge_norm_forward(ctx, experts_merge(w, saved), after.h, after.rstd, after.weight->weight,
                     c.rms_norm_eps);
}

void block_backward(Context& ctx, const ModelConfig& c, const BlockParameters& w, const Tensor& dx,
                    const Tensor& dh, const Tensor& drouter_state, const BlockSaved& saved,
                    const NormAfter& after, const Tensor& x, const Tensor& router_state,
                    const AttentionInputs& attention, Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::norms);
  ArenaScope scope(scratch);
  const Tensor dout = scratch.tensor(saved.input_h.dtype, saved.input_h.shape);
  merge_norm_backward(ctx, dx, dout, w.experts_merge.gradients(), after.weight->gradient, dh,
                      experts_merge(w, saved), after.rstd, after.weight->weight);
  experts_backward(ctx, c, w.experts, dh, drouter_state, dout, saved.experts, saved.experts_h,
                   router_state, scratch);
  merge_norm_backward(ctx, dx, dout, w.attention_merge.gradients(), w.experts_norm->gradient, dh,
                      attention_merge(w, saved, x), saved.experts_rstd, w.experts_norm->weight);
  attention_backward(ctx, c, w.attention, dh, dout, saved.attention, saved.input_h, attention,
                     scratch);
}

}  // namespace zaya
