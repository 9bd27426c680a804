#pragma once
// The contract of adamw.h in plain loops.

#include <cmath>
#include <cstdint>

#include "ops/optim/adamw.h"

namespace zaya::reference {

template <class S>
void adamw_update(S* w, S* m, S* v, const S* gradient, int64_t n, const AdamWSettings& s) {
  const double b1 = s.beta1, b2 = s.beta2;
  for (int64_t i = 0; i < n; ++i) {
    const S g = gradient[i] * static_cast<double>(s.gradient_scale);
    m[i] = b1 * m[i] + (1 - b1) * g;
    v[i] = b2 * v[i] + (1 - b2) * g * g;
    const S mean = m[i] / (1 - std::pow(b1, static_cast<double>(s.step)));
    const S square = v[i] / (1 - std::pow(b2, static_cast<double>(s.step)));
    const S decay = static_cast<double>(s.weight_decay) * w[i];
    w[i] -= static_cast<double>(s.learning_rate) *
            (mean / (std::sqrt(square) + static_cast<double>(s.eps)) + decay);
  }
}

}  // namespace zaya::reference
