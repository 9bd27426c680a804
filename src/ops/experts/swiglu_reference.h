#pragma once
// swiglu.h in plain loops.

#include <cmath>
#include <complex>
#include <cstdint>

namespace zaya::reference {

// y [M, I];  gate_up [M, 2 I].
template <class S>
void swiglu(S* y, const S* gate_up, int64_t M, int64_t I) {
  using std::exp;
  for (int64_t m = 0; m < M; ++m) {
    for (int64_t i = 0; i < I; ++i) {
      const S g = gate_up[m * 2 * I + i];
      const S u = gate_up[m * 2 * I + I + i];
      y[m * I + i] = g / (1.0 + exp(-g)) * u;
    }
  }
}

}  // namespace zaya::reference
