#pragma once
// Tokens grouped by the expert they chose, by a stable counting sort. T tokens, E experts; tokens
// that chose the skip slot (class E) come last and belong to no expert.

#include <cstdint>

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// order [T] i32: sorted position -> token.   offsets [E + 2] i32: expert e holds sorted positions
// [offsets[e], offsets[e + 1]); the skipped tokens are [offsets[E], offsets[E + 1] = T).
// choice [T] i32 in [0, E].
void sort_by_expert(Context& ctx, const Tensor& order, const Tensor& offsets, const Tensor& choice);

// out[i] = in[order[i]] for the sorted positions i < offsets[E].
// out, in [T, D]: each f32 or bf16.
void gather_rows(Context& ctx, const Tensor& out, const Tensor& in, const Tensor& order,
                 const Tensor& offsets);

// out[order[i]] = in[i] for i < offsets[E]; zero for skipped tokens.   out [T, D] f32;
// in [T, D] f32 or bf16.
void scatter_rows(Context& ctx, const Tensor& out, const Tensor& in, const Tensor& order,
                  const Tensor& offsets);

}  // namespace zaya
