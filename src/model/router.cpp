#include "model/router.h"

#include "ops/elementwise/elementwise.h"
#include "ops/linear/linear.h"
#include "ops/norm/rms_norm.h"
#include "ops/router/bias_gelu.h"
#include "ops/router/choose_expert.h"
#include "ops/router/depth_average.h"

namespace zaya {

RouterParameters router_parameters(Parameters& parameters, int64_t block) {
  const auto find = [&](const char* name) {
    return &parameters.find(fmt::format("model.layers.{}.mlp.gate.{}", block, name));
  };
  return {find("down_proj.weight"),
          find("down_proj.bias"),
          block > 0 ? find("router_states_scale") : nullptr,
          find("router_mlp.norm.weight"),
          find("router_mlp.fc1.weight"),
          find("router_mlp.fc1.bias"),
          find("router_mlp.fc2.weight"),
          find("router_mlp.fc2.bias"),
          find("router_mlp.out_proj.weight"),
          find("balancing_biases")};
}

RouterSaved plan_router(Arena& arena, const ModelConfig& c, int64_t T) {
  const int64_t R = c.router_hidden_size, K = c.router_classes();
  RouterSaved saved;
  for (Tensor* x :
       {&saved.state, &saved.normed, &saved.fc1, &saved.fc2, &saved.hidden1, &saved.hidden2})
    *x = arena.tensor(DType::f32, {T, R});
  saved.rstd = arena.tensor(DType::f32, {T});
  saved.probabilities = arena.tensor(DType::f32, {T, K});
  saved.choice = arena.tensor(DType::i32, {T});
  saved.gate = arena.tensor(DType::f32, {T});
  return saved;
}

void router_forward(Context& ctx, const ModelConfig& c, const RouterParameters& w,
                    const RouterSaved& saved, const Tensor& h, const Tensor& previous,
                    Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::router);
  ArenaScope scope(scratch);
  const Tensor logits = scratch.tensor(DType::f32, saved.probabilities.shape);
  linear_forward(ctx, saved.state, h, w.down_proj->matrix());
  depth_average_forward(ctx, saved.state, w.down_proj_bias->weight, previous,
                        w.states_scale ? w.states_scale->weight : Tensor());
  rms_norm_forward(ctx, saved.normed, saved.rstd, saved.state, w.norm->weight, c.rms_norm_eps);
  linear_forward(ctx, saved.fc1, saved.normed, w.fc1->matrix());
  bias_gelu_forward(ctx, saved.hidden1, saved.fc1, w.fc1_bias->weight);
  linear_forward(ctx, saved.fc2, saved.hidden1, w.fc2->matrix());
  bias_gelu_forward(ctx, saved.hidden2, saved.fc2, w.fc2_bias->weight);
  linear_forward(ctx, logits, saved.hidden2, w.out_proj->matrix());
  choose_expert_forward(ctx, saved.probabilities, saved.choice, saved.gate, logits,
                        w.balancing_biases->weight);
}

void router_backward(Context& ctx, const ModelConfig&, const RouterParameters& w, const Tensor& dh,
                     const Tensor& dstate, const Tensor& dgate, const RouterSaved& saved,
                     const Tensor& h, const Tensor& previous, Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::router);
  ArenaScope scope(scratch);
  const Tensor dlogits = scratch.tensor(DType::f32, saved.probabilities.shape);
  const Tensor dhidden = scratch.tensor(DType::f32, saved.state.shape);
  const Tensor dnormed = scratch.tensor(DType::f32, saved.state.shape);

  choose_expert_backward(ctx, dlogits, dgate, saved.probabilities, saved.choice);
  linear_backward_input(ctx, dhidden, dlogits, w.out_proj->weight, Into::overwrite);
  linear_backward_weight(ctx, w.out_proj->gradient, dlogits, saved.hidden2);
  bias_gelu_backward(ctx, dhidden, w.fc2_bias->gradient, dhidden, saved.fc2, w.fc2_bias->weight);
  linear_backward_weight(ctx, w.fc2->gradient, dhidden, saved.hidden1);
  linear_backward_input(ctx, dnormed, dhidden, w.fc2->weight, Into::overwrite);
  bias_gelu_backward(ctx, dnormed, w.fc1_bias->gradient, dnormed, saved.fc1, w.fc1_bias->weight);
  linear_backward_weight(ctx, w.fc1->gradient, dnormed, saved.normed);
  linear_backward_input(ctx, dhidden, dnormed, w.fc1->weight, Into::overwrite);
  rms_norm_backward(ctx, dstate, w.norm->gradient, dhidden, saved.state, w.norm->weight,
                    saved.rstd);

  linear_backward_input(ctx, dh, dstate, w.down_proj->weight, Into::add);
  linear_backward_weight(ctx, w.down_proj->gradient, dstate, h);
  const bool first = w.states_scale == nullptr;
  depth_average_backward(ctx, first ? Tensor() : dstate, w.down_proj_bias->gradient,
                         first ? Tensor() : w.states_scale->gradient, dstate, previous,
                         first ? Tensor() : w.states_scale->weight);
}

}  // namespace zaya
