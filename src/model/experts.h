#pragma once
// The mixture of experts: route, sort tokens by expert, one SwiGLU network each, back in order.
// T tokens, D hidden, E experts of inner width I.

#include "model/router.h"

namespace zaya {

struct ExpertsParameters {
  RouterParameters router;
  Parameter* gate_up_proj;  // [E, 2 I, D]
  Parameter* down_proj;     // [E, D, I]
};

ExpertsParameters experts_parameters(Parameters& parameters, int64_t block);

// A: the activation format, f32 or bf16. Sorted rows: tokens in the order of their experts.
struct ExpertsSaved {
  RouterSaved router;
  Tensor order;    // [T] i32
  Tensor offsets;  // [E + 2] i32
  Tensor sorted;   // [T, D] A, the experts' inputs
  Tensor gate_up;  // [T, 2 I] A
  Tensor inner;    // [T, I] A
  Tensor output;   // [T, D] A, sorted, before the router's weight
};

ExpertsSaved plan_experts(Arena& arena, const ModelConfig& config, DType activation, int64_t T);

// out [T, D] A;  h [T, D] f32;  previous: the router state of the block before (null in block 0).
void experts_forward(Context& ctx, const ModelConfig& config, const ExpertsParameters& weights,
                     const Tensor& out, const ExpertsSaved& saved, const Tensor& h,
                     const Tensor& previous, Arena& scratch);

// dh [T, D] f32: overwritten.   dstate: see router_backward.   dout [T, D] A.
void experts_backward(Context& ctx, const ModelConfig& config, const ExpertsParameters& weights,
                      const Tensor& dh, const Tensor& dstate, const Tensor& dout,
                      const ExpertsSaved& saved, const Tensor& h, const Tensor& previous,
                      Arena& scratch);

}  // namespace zaya
