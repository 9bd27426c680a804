#pragma once
// The second convolution of CCA: one d x d matrix per head (group) and tap.
//   out[t, g*d + o] = bias[g*d + o] + sum_i sum_c weight[g*d + o, c, i] * in[row(t) + i, g*d + c]
// where in is depthwise_conv's output, whose sequence s starts at row begin(s) + s * (K1 - 1), and
// row(t) = t + s * (K1 - 1): tap K1 - 1 reads the token itself.
// C channels in groups of d, K1 = time1 taps.

#include "backend/context.h"
#include "core/tensor.h"
#include "ops/ragged.h"

namespace zaya {

// out [T, C] f32;  in [T + S * (K1 - 1), C] f32 or bf16;  weight [C, d, K1] f32 (rounded to the
// format of `in` for the products, unless ctx.rows are apart);  bias [C] f32.
void grouped_conv_forward(Context& ctx, const Tensor& out, const Tensor& in, const Tensor& weight,
                          const Tensor& bias, Ragged sequences);

// din [T + S * (K1 - 1), C] f32: overwritten.   dweight [C, d, K1], dbias [C] f32: add.
// dout [T, C] f32 (rounded to bf16 for the products where the machine multiplies bf16 and `in` is
// bf16).
void grouped_conv_backward(Context& ctx, const Tensor& din, const Tensor& dweight,
                           const Tensor& dbias, const Tensor& dout, const Tensor& in,
                           const Tensor& weight, Ragged sequences);

}  // namespace zaya
