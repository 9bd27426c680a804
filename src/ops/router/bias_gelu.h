#pragma once
// y = gelu(x + bias), the exact form: gelu(u) = u/2 * (1 + erf(u / sqrt 2)).
// T rows, N columns, all f32.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// y, x [T, N] (y may not be x: backward needs x);  bias [N].
void bias_gelu_forward(Context& ctx, const Tensor& y, const Tensor& x, const Tensor& bias);

// dx [T, N]: overwritten (may be dy itself).   dbias [N]: adds.   dy, x [T, N].
void bias_gelu_backward(Context& ctx, const Tensor& dx, const Tensor& dbias, const Tensor& dy,
                        const Tensor& x, const Tensor& bias);

}  // namespace zaya
