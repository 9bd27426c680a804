#pragma once
// y = x W_e^T for each expert's rows: one matrix product per expert over tokens sorted by expert
// (dispatch.h). T rows in all, E experts, weights: of expert e [N, K]; sums in fp32. Activations
// are f32 or bf16, and so are the weights in backward. Forward takes the rows of x as ctx.rows
// says. Rows of skipped tokens (positions offsets[E] and up) are neither read nor written.

#include <span>

#include "backend/context.h"
#include "core/weight.h"

namespace zaya {

// y [T, N];  x [T, K];  offsets [E + 2] i32.
void expert_linear_forward(Context& ctx, const Tensor& y, const Tensor& x,
                           std::span<const Weight> weights, const Tensor& offsets);

// dx [T, K]: overwritten.   dy [T, N].
void expert_linear_backward_input(Context& ctx, const Tensor& dx, const Tensor& dy,
                                  std::span<const Weight> weights, const Tensor& offsets);

// dweight [E, N, K] f32: adds (nothing for an expert without tokens).
void expert_linear_backward_weight(Context& ctx, const Tensor& dweight, const Tensor& dy,
                                   const Tensor& x, const Tensor& offsets);

}  // namespace zaya
