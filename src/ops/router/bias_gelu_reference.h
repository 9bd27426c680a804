#pragma once
// bias_gelu.h in plain loops.

#include <cmath>
#include <cstdint>

#include "ops/scalar.h"

namespace zaya::reference {

// y, x [T, N];  bias [N].
template <class S>
void bias_gelu(S* y, const S* x, const S* bias, int64_t T, int64_t N) {
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t n = 0; n < N; ++n) {
      const S u = x[t * N + n] + bias[n];
      y[t * N + n] = u * 0.5 * (1.0 + erf(u * std::sqrt(0.5)));
    }
  }
}

}  // namespace zaya::reference
