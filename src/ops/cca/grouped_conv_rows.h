#pragma once
// The grouped convolution of tokens generated one by one (ctx.rows apart): a product for each head,
// its filters read once as they lie.

#include "core/tensor.h"
#include "ops/ragged.h"

namespace zaya {

// As grouped_conv_forward, but the weight is not rounded to the format of `in`.
void grouped_conv_rows_forward(const Tensor& out, const Tensor& in, const Tensor& weight,
                               const Tensor& bias, Ragged sequences);

}  // namespace zaya
