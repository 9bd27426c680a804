#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/cca/qk_norm_rope.h"
#include "ops/scalar.h"

namespace zaya::reference {

// out[0, d) = rotate(x * sqrt(d) / max(|x|, eps) * temp).
template <class S>
void norm_rope_head(S* out, const S* x, S temp, const S* cos, const S* sin, const QkShape& shape) {
  const int64_t d = shape.head_dim, half = shape.rotary / 2;
  S square = 0;
  for (int64_t c = 0; c < d; ++c) square += x[c] * x[c];
  S norm = kQkNormEps;
  if (real(square) > double(kQkNormEps) * kQkNormEps) norm = std::sqrt(square);
  const S factor = temp * std::sqrt(double(d)) / norm;
  for (int64_t i = 0; i < half; ++i) {
    out[i] = factor * (x[i] * cos[i] - x[i + half] * sin[i]);
    out[i + half] = factor * (x[i + half] * cos[i] + x[i] * sin[i]);
  }
  for (int64_t c = 2 * half; c < d; ++c) out[c] = factor * x[c];
}

// See qk_norm_rope.h.
template <class S>
void qk_norm_rope(S* q, S* k, const S* z, const S* qk0, const S* temp, const S* cos, const S* sin,
                  const int32_t* positions, int64_t tokens, const QkShape& shape) {
  const int64_t d = shape.head_dim, nq = shape.query_heads, nk = shape.key_heads, G = nq / nk;
  std::vector<S> x(d), mean(d);
  for (int64_t t = 0; t < tokens; ++t) {
    const S* z_t = z + t * (nq + nk) * d;
    const S* q0 = qk0 + t * (nq + nk) * d;
    const S* k0 = q0 + nq * d;
    const S* cos_t = cos + positions[t] * (shape.rotary / 2);
    const S* sin_t = sin + positions[t] * (shape.rotary / 2);
    for (int64_t g = 0; g < nk; ++g) {
      std::fill(mean.begin(), mean.end(), S(0));
      for (int64_t j = g * G; j < (g + 1) * G; ++j) {
        for (int64_t c = 0; c < d; ++c) {
          const S mq = (q0[j * d + c] + k0[g * d + c]) / 2.0;
          mean[c] += mq / double(G);
          x[c] = z_t[j * d + c] + mq;
        }
        norm_rope_head(q + (t * nq + j) * d, x.data(), S(1), cos_t, sin_t, shape);
      }
      for (int64_t c = 0; c < d; ++c) x[c] = z_t[(nq + g) * d + c] + mean[c];
      norm_rope_head(k + (t * nk + g) * d, x.data(), temp[g], cos_t, sin_t, shape);
    }
  }
}

}  // namespace zaya::reference
