#pragma once
// How far results may lie from double-precision references, and why.

#include "core/dtype.h"

namespace zaya {

struct ParityTolerance {
  double forward;        // logits, loss, hidden states
  double gradient;       // each gradient tensor
  double choices;        // share of expert choices that differ
  double cached_prompt;  // prompts through the caches against the full forward
  double cached;         // generated tokens through the caches against the full forward
};

// fp32: sums of a few thousand terms at 6e-8 each; measured below 6e-6 on the reference models, so
// 1e-4 leaves room for larger ones and still catches any wrong term. The references keep 2e-4
// between the chosen expert and the next, so the choices are equal.
//
// bf16: activations and weights carry 8 bits, a rounding error of up to 2^-9 = 2e-3 each: measured
// 0.7% on logits and 3% on gradients where every choice is the reference's. But a token near a tie
// may choose another expert, and its output is then another one: with a share f of such tokens the
// Frobenius error is of the order of sqrt(f) / 2 on hidden states (6% measured for 1 of 66 tokens),
// and several times that on the router's gradients.
//
// A prompt's tokens pass through the caches with the bits of the full forward; only the head adds
// in another order, in fp32. Generated tokens take kernels of their own: in bf16 a second rounding
// of everything, which may flip choices as the first did.
inline ParityTolerance parity_tolerance(DType compute) {
  if (compute == DType::f32) return {1e-4, 1e-4, 0, 1e-5, 1e-5};
  return {0.12, 0.4, 0.05, 1e-5, 0.12};
}

}  // namespace zaya
