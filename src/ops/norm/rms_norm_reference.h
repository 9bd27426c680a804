#pragma once
// The contract of rms_norm.h in plain loops.

#include <cmath>
#include <complex>
#include <cstdint>

namespace zaya::reference {

// y [T, N], x [T, N], weight [N].
template <class S>
void rms_norm_forward(S* y, const S* x, const S* weight, int64_t T, int64_t N, double eps) {
  using std::sqrt;
  for (int64_t t = 0; t < T; ++t) {
    S squares = 0;
    for (int64_t n = 0; n < N; ++n) squares += x[t * N + n] * x[t * N + n];
    const S rstd = 1.0 / sqrt(squares / static_cast<double>(N) + eps);
    for (int64_t n = 0; n < N; ++n) y[t * N + n] = x[t * N + n] * rstd * weight[n];
  }
}

}  // namespace zaya::reference
