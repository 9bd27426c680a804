#pragma once
// The delayed half of CCA's values: out[t] = in[t - 1] within each sequence; the first token takes
// `previous` (what a decoder remembers) or zero. T tokens, S sequences, H channels.

#include "backend/context.h"
#include "core/tensor.h"
#include "ops/ragged.h"

namespace zaya {

// out [T, H] (rows may be strided) and in [T, H]: the same format, f32 or bf16;  previous [S, H] of
// that format, or null data for zeros.
void value_shift_forward(Context& ctx, const Tensor& out, const Tensor& in, const Tensor& previous,
                         Ragged sequences);

// din [T, H]: overwritten; dout [T, H] (rows may be strided). Same format, f32 or bf16.
void value_shift_backward(Context& ctx, const Tensor& din, const Tensor& dout, Ragged sequences);

}  // namespace zaya
