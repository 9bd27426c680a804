#pragma once
// Reference for expert_linear.h, in plain loops over any scalar.

#include <cstdint>

namespace zaya::reference {

// y [T, N] = x [T, K] weight[e] [N, K]^T for the rows of each expert e; other rows are left alone.
template <class S>
void expert_linear(S* y, const S* x, const S* weight, const int32_t* offsets, int64_t experts,
                   int64_t outputs, int64_t inputs) {
  for (int64_t e = 0; e < experts; ++e)
    for (int64_t t = offsets[e]; t < offsets[e + 1]; ++t)
      for (int64_t n = 0; n < outputs; ++n) {
        S sum = 0;
        for (int64_t k = 0; k < inputs; ++k)
          sum += x[t * inputs + k] * weight[(e * outputs + n) * inputs + k];
        y[t * outputs + n] = sum;
      }
}

}  // namespace zaya::reference
