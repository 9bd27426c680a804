#pragma once
// The first convolution of CCA: one causal filter per channel.
//   out[t, c] = bias[c] + sum_i weight[c, i] * in[t - (K0 - 1) + i, c]
// S sequences of T tokens in all, C channels, K0 = time0 taps, lead = time1 - 1.
//
// The grouped convolution that follows sees `lead` rows before each sequence, and those rows are
// this convolution's output there, not zero (zaya1.md, Traps): before a fresh document `in` is
// zero, so the output is the bias. `out` therefore has lead + length(s) rows for sequence s:
// sequence s starts at row begin(s) + s * lead.
//
// While decoding, what came before is not zero but remembered: `history` [S, P, C] holds the last
// P = (time0 - 1) + (time1 - 1) input rows of each sequence. A history with null data means zeros.

#include "backend/context.h"
#include "core/tensor.h"
#include "ops/ragged.h"

namespace zaya {

// out [T + S * lead, C] and in [T, C]: f32 or bf16 (the same);  history [S, P, C] like in, or null;
// weight [C, K0] (or [C, 1, K0]) f32;  bias [C] f32.
void depthwise_conv_forward(Context& ctx, const Tensor& out, const Tensor& in,
                            const Tensor& history, const Tensor& weight, const Tensor& bias,
                            Ragged sequences, int64_t lead);

// din [T, C] f32 or bf16, like in: overwritten with this convolution's share plus `other` [T, C]
// f32, what reaches `in` by other ways (it may be din).   dweight, dbias f32: add.
// dout [T + S * lead, C] f32.   History is taken as zeros: training sequences start fresh.
void depthwise_conv_backward(Context& ctx, const Tensor& din, const Tensor& dweight,
                             const Tensor& dbias, const Tensor& other, const Tensor& dout,
                             const Tensor& in, const Tensor& weight, Ragged sequences,
                             int64_t lead);

}  // namespace zaya
