#pragma once
// Token embedding with ZAYA1's scale and bias:  x = (E[id] + bias) * scale
// T tokens, V vocabulary, D hidden.

#include "backend/context.h"
#include "core/weight.h"

namespace zaya {

// x [T, D] f32;  ids [T] i32 in [0, V);  table [V, D];  bias, scale [D] f32.
void embedding_forward(Context& ctx, const Tensor& x, const Tensor& ids, const Weight& table,
                       const Tensor& bias, const Tensor& scale);

// dtable [V, D] f32: adds.  table: plain.   dbias, dscale [D] f32: add.   dx [T, D] f32.
void embedding_backward(Context& ctx, const Tensor& dtable, const Tensor& dbias,
                        const Tensor& dscale, const Tensor& dx, const Tensor& ids,
                        const Tensor& table, const Tensor& bias, const Tensor& scale);

}  // namespace zaya
