#pragma once
// The contract of linear.h in plain loops. All arrays contiguous.

#include <cstdint>

namespace zaya::reference {

// y [T, N] = x [T, K] weight^T, weight [N, K].
template <class S>
void linear_forward(S* y, const S* x, const S* weight, int64_t T, int64_t N, int64_t K) {
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t n = 0; n < N; ++n) {
      S sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += x[t * K + k] * weight[n * K + k];
      y[t * N + n] = sum;
    }
  }
}

// y [T, N] += bias [N].
template <class S>
void add_bias(S* y, const S* bias, int64_t T, int64_t N) {
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t n = 0; n < N; ++n) y[t * N + n] += bias[n];
  }
}

}  // namespace zaya::reference
