#pragma once
// Weights of products as integer codes with a scale for every 32 inputs (core/weight.h), and back.

#include "backend/context.h"
#include "core/weight.h"

namespace zaya {

// to [N, K] int8 or int4: overwritten, codes and scales.   from [N, K] f32 or bf16, finite.
//   int8: a group's largest value becomes 127 or -127.
//   int4: of 21 scales around the one that puts the largest value at -8, the one of least squared
//   error.
void quantize(Context& ctx, const Weight& to, const Tensor& from);

// to [N, K] f32 or bf16: overwritten with the values of a weight of any format.
void dequantize(Context& ctx, const Tensor& to, const Weight& from);

}  // namespace zaya
