#pragma once
// The iteration inside muon.h, on memory of the caller.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// `products`: as in MuonSettings.

// Floats of scratch one matrix needs, beside the matrix itself.
int64_t newton_schulz_scratch(int64_t rows, int64_t columns, DType products);

// Multiplications it takes, without what strips compute above the diagonal; one of bf16 counts
// half.
double newton_schulz_multiplications(int64_t rows, int64_t columns, DType products);

// Orthogonalises x [rows, columns], f32 and contiguous. Both x and scratch are overwritten; the
// result, f32 and contiguous too, is where the returned pointer says: in one of them. Uses the
// threads when called from outside a parallel loop; the result is the same.
float* newton_schulz_steps(Context& ctx, float* x, float* scratch, int64_t rows, int64_t columns,
                           DType products);

}  // namespace zaya
