#pragma once
// The iteration inside muon.h, in place on scratch memory of the caller.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// Floats of scratch one matrix needs, beside the matrix itself.
int64_t newton_schulz_scratch(int64_t rows, int64_t columns);

// x [rows, columns] f32, contiguous, is replaced by its orthogonalisation. Uses the threads when
// called from outside a parallel loop; the result is the same.
void newton_schulz_in_place(Context& ctx, float* x, float* scratch, int64_t rows, int64_t columns);

}  // namespace zaya
