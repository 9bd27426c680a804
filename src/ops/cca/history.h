#pragma once
// What a decoder remembers of the rows it has seen: the last P of them, oldest first.

#include "backend/context.h"
#include "core/tensor.h"
#include "ops/ragged.h"

namespace zaya {

// history [S, P, H] becomes, per sequence, the last P rows of concat(history, in).   in [T, H] of
// the same format. P may be 0.
void history_append(Context& ctx, const Tensor& history, const Tensor& in, Ragged sequences);

}  // namespace zaya
