#pragma once
// Plain elementwise ops over contiguous tensors of equal size, and a few over matrices.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

void fill_zero(Context& ctx, const Tensor& x);  // any format
// to = from, converted (f32 <-> bf16, or the same format). Rows of either may be strided.
void convert(Context& ctx, const Tensor& to, const Tensor& from);
// y [n] f32 += x [n] f32 or bf16.
void add(Context& ctx, const Tensor& y, const Tensor& x);
// x [n] f32 *= factor.
void scale(Context& ctx, const Tensor& x, float factor);
// x [n] f32 = mean + deviation * normal(0, 1), the i-th value a pure function of (seed, i).
void fill_normal(Context& ctx, const Tensor& x, uint64_t seed, float mean, float deviation);

}  // namespace zaya
