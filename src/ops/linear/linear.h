#pragma once
// y = x W^T, the weight stored as [outputs N, inputs K] (HF's layout). Activations and the compute
// copy of the weight are f32 or bf16, sums are fp32. Any tensor may be a column slice of a wider
// one.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

enum class Into { overwrite, add };

// y [T, N];  x [T, K];  weight [N, K].
void linear_forward(Context& ctx, const Tensor& y, const Tensor& x, const Tensor& weight);

// dx [T, K]: overwritten, or added to (f32 only) when several consumers share x.
void linear_backward_input(Context& ctx, const Tensor& dx, const Tensor& dy, const Tensor& weight,
                           Into into);

// dweight [N, K] f32: adds.
void linear_backward_weight(Context& ctx, const Tensor& dweight, const Tensor& dy, const Tensor& x);

// dbias [N] f32: adds the column sums of dy [T, N] (f32 or bf16).
void bias_backward(Context& ctx, const Tensor& dbias, const Tensor& dy);

}  // namespace zaya
