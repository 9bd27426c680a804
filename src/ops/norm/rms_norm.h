#pragma once
// RMSNorm:  y = x / sqrt(mean(x^2) + eps) * weight      (per row; sums in fp32)
// T rows (tokens), N columns.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// y [T, N] f32 or bf16;  rstd [T] f32 (saved: 1 / sqrt(mean + eps));  x [T, N] f32;  weight [N]
// f32.
void rms_norm_forward(Context& ctx, const Tensor& y, const Tensor& rstd, const Tensor& x,
                      const Tensor& weight, float eps);

// dx [T, N] f32: adds (the residual stream's gradient is already there).
// dweight [N] f32: adds.    dy [T, N] f32 or bf16.
void rms_norm_backward(Context& ctx, const Tensor& dx, const Tensor& dweight, const Tensor& dy,
                       const Tensor& x, const Tensor& weight, const Tensor& rstd);

}  // namespace zaya
