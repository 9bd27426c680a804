#pragma once
// Sum of squares of x (f32, contiguous) in double, blocks of a fixed length summed in order: the
// same bits for any thread count. NaN and infinity carry through, so one test of the sum finds
// them.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

double sum_squares(Context& ctx, const Tensor& x);

}  // namespace zaya
