#pragma once
// y = x W^T, the weight stored as [outputs N, inputs K] (HF's layout). Activations are f32 or bf16,
// sums are fp32; backward wants plain weights (f32 or bf16). Any tensor may be a column slice of a
// wider one. Forward takes the rows of x as ctx.rows says.

#include <span>

#include "backend/context.h"
#include "core/weight.h"

namespace zaya {

enum class Into { overwrite, add };

// y [T, N];  x [T, K];  weight [N, K].
void linear_forward(Context& ctx, const Tensor& y, const Tensor& x, const Weight& weight);

// dx [T, K]: overwritten, or added to (f32 only) when several consumers share x.
void linear_backward_input(Context& ctx, const Tensor& dx, const Tensor& dy, const Tensor& weight,
                           Into into);

// dweight [N, K] f32: adds.
void linear_backward_weight(Context& ctx, const Tensor& dweight, const Tensor& dy, const Tensor& x);

// Several layers that read the same x [T, K].
struct LinearPart {
  Tensor y;         // [T, N_i]: y in forward, dy in backward
  Weight weight;    // [N_i, K]
  Tensor gradient;  // [N_i, K] f32; backward only
};

// y_i = x W_i^T.
void linear_forward(Context& ctx, std::span<const LinearPart> parts, const Tensor& x);
// dx [T, K]: overwritten with the sum of dy_i W_i.
void linear_backward_input(Context& ctx, const Tensor& dx, std::span<const LinearPart> parts);
// gradient_i: adds dy_i^T x.
void linear_backward_weight(Context& ctx, std::span<const LinearPart> parts, const Tensor& x);

// dbias [N] f32: adds the column sums of dy [T, N] (f32 or bf16).
void bias_backward(Context& ctx, const Tensor& dbias, const Tensor& dy);

}  // namespace zaya
