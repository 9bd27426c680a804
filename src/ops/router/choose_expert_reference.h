#pragma once
// choose_expert.h in plain loops.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/scalar.h"

namespace zaya::reference {

// probabilities, logits [T, K];  choice, gate [T];  balancing_bias [K].
template <class S>
void choose_expert(S* probabilities, int32_t* choice, S* gate, const S* logits,
                   const double* balancing_bias, int64_t T, int64_t K) {
  using std::exp;
  for (int64_t t = 0; t < T; ++t) {
    const S* z = logits + t * K;
    S* s = probabilities + t * K;
    double largest = real(z[0]);
    for (int64_t k = 1; k < K; ++k) largest = std::max(largest, real(z[k]));
    S sum = 0;
    for (int64_t k = 0; k < K; ++k) sum += s[k] = exp(z[k] - largest);
    for (int64_t k = 0; k < K; ++k) s[k] /= sum;
    int32_t best = 0;
    for (int64_t k = 1; k < K; ++k) {
      if (real(s[k]) + balancing_bias[k] > real(s[best]) + balancing_bias[best]) best = k;
    }
    choice[t] = best;
    gate[t] = s[best];
  }
}

}  // namespace zaya::reference
