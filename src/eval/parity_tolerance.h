#pragma once
// How far results may lie from double-precision references, and why.

#include "core/dtype.h"

namespace zaya {

struct ParityTolerance {
  double forward;   // logits, loss, hidden states
  double gradient;  // each gradient tensor
  double choices;   // share of expert choices that differ
  double cached;    // cached decoding against the full forward
};

// fp32: sums of a few thousand terms at 6e-8 each; measured below 3e-6 on the reference models, so
// 1e-4 leaves room for larger ones and still catches any wrong term. The references keep 2e-4
// between the chosen expert and the next, so the choices are equal.
//
// bf16: activations and weights carry 8 bits, a rounding error of up to 2^-9 = 2e-3 each; through a
// few blocks that is a few percent on hidden states, and a token whose expert was near a tie takes
// another one, which moves every gradient it feeds.
inline ParityTolerance parity_tolerance(DType compute) {
  if (compute == DType::f32) return {1e-4, 1e-4, 0, 1e-5};
  return {0.05, 0.25, 0.05, 0.05};
}

}  // namespace zaya
