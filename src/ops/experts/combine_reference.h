#pragma once
// combine.h in plain loops.

#include <cstdint>

#include "ops/experts/combine.h"

namespace zaya::reference {

// y, expert_out (sorted rows), h [T, D];  gate [T];  order [T]: the first `count` positions chose
// an expert.
template <class S>
void combine(S* y, const S* expert_out, const S* h, const S* gate, const int32_t* order,
             int64_t count, Skip skip, int64_t T, int64_t D) {
  for (int64_t i = 0; i < T; ++i) {
    const int64_t t = order[i];
    for (int64_t c = 0; c < D; ++c) {
      if (i < count) {
        y[t * D + c] = gate[t] * expert_out[i * D + c];
      } else {
        y[t * D + c] = skip == Skip::pass ? gate[t] * h[t * D + c] : S(0);
      }
    }
  }
}

}  // namespace zaya::reference
