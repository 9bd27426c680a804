#include "model/experts.h"

#include "ops/elementwise/elementwise.h"
#include "ops/experts/combine.h"
#include "ops/experts/dispatch.h"
#include "ops/experts/expert_linear.h"
#include "ops/experts/swiglu.h"

namespace zaya {
namespace {

// combine wants h in the activation format, and only where skipped tokens pass through.
Tensor passed_through(Context& ctx, const ModelConfig& c, DType activation, const Tensor& h,
                      Arena& scratch) {
  if (c.skip == Skip::zero || activation == h.dtype) return h;
  const Tensor converted = scratch.tensor(activation, h.shape);
  convert(ctx, converted, h);
  return converted;
}

}  // namespace

ExpertsParameters experts_parameters(Parameters& parameters, int64_t block) {
  const std::string prefix = fmt::format("model.layers.{}.mlp.experts.", block);
  return {router_parameters(parameters, block), &parameters.find(prefix + "gate_up_proj"),
          &parameters.find(prefix + "down_proj")};
}

ExpertsSaved plan_experts(Arena& arena, const ModelConfig& c, DType activation, int64_t T) {
  const int64_t D = c.hidden_size, I = c.moe_intermediate_size;
  ExpertsSaved saved;
  saved.router = plan_router(arena, c, T);
  saved.order = arena.tensor(DType::i32, {T});
  saved.offsets = arena.tensor(DType::i32, {c.num_experts + 2});
  saved.sorted = arena.tensor(activation, {T, D});
  saved.gate_up = arena.tensor(activation, {T, 2 * I});
  saved.inner = arena.tensor(activation, {T, I});
  saved.output = arena.tensor(activation, {T, D});
  return saved;
}

void experts_forward(Context& ctx, const ModelConfig& c, const ExpertsParameters& w,
                     const Tensor& out, const ExpertsSaved& saved, const Tensor& h,
                     const Tensor& previous, Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::experts);
  ArenaScope scope(scratch);
  router_forward(ctx, c, w.router, saved.router, h, previous, scratch);
  sort_by_expert(ctx, saved.order, saved.offsets, saved.router.choice);
  gather_rows(ctx, saved.sorted, h, saved.order, saved.offsets);
  expert_linear_forward(ctx, saved.gate_up, saved.sorted, w.gate_up_proj->matrices, saved.offsets);
  swiglu_forward(ctx, saved.inner, saved.gate_up);
  expert_linear_forward(ctx, saved.output, saved.inner, w.down_proj->matrices, saved.offsets);
  combine_forward(ctx, out, saved.output, passed_through(ctx, c, out.dtype, h, scratch),
                  saved.router.gate, saved.order, saved.offsets, c.skip);
}

void experts_backward(Context& ctx, const ModelConfig& c, const ExpertsParameters& w,
                      const Tensor& dh, const Tensor& dstate, const Tensor& dout,
                      const ExpertsSaved& saved, const Tensor& h, const Tensor& previous,
                      Arena& scratch) {
  const Timed timed(ctx.profile, OpGroup::experts);
  ArenaScope scope(scratch);
  const Tensor doutput = scratch.tensor(dout.dtype, saved.output.shape);
  const Tensor dinner = scratch.tensor(dout.dtype, saved.inner.shape);
  const Tensor dgate_up = scratch.tensor(dout.dtype, saved.gate_up.shape);
  const bool passes = c.skip == Skip::pass;
  const Tensor dskipped = passes ? scratch.tensor(DType::f32, h.shape) : Tensor();
  const Tensor dgate = scratch.tensor(DType::f32, saved.router.gate.shape);

  combine_backward(ctx, doutput, dskipped, dgate, dout, saved.output,
                   passed_through(ctx, c, dout.dtype, h, scratch), saved.router.gate, saved.order,
                   saved.offsets, c.skip);
  expert_linear_backward_input(ctx, dinner, doutput, w.down_proj->matrices, saved.offsets);
  expert_linear_backward_weight(ctx, w.down_proj->gradient, doutput, saved.inner, saved.offsets);
  swiglu_backward(ctx, dgate_up, dinner, saved.gate_up);
  expert_linear_backward_weight(ctx, w.gate_up_proj->gradient, dgate_up, saved.sorted,
                                saved.offsets);
  const Tensor dsorted = doutput;  // its last reader is done
  expert_linear_backward_input(ctx, dsorted, dgate_up, w.gate_up_proj->matrices, saved.offsets);
  scatter_rows(ctx, dh, dsorted, saved.order, saved.offsets);
  if (passes) add(ctx, dh, dskipped);
  router_backward(ctx, c, w.router, dh, dstate, dgate, saved.router, h, previous, scratch);
}

}  // namespace zaya
