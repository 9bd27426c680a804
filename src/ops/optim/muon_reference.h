#pragma once
// The contract of muon.h in plain loops. All matrices [rows, columns], contiguous.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/optim/muon.h"

namespace zaya::reference {

// c [m, n] = a [m, k] b [k, n].
template <class S>
std::vector<S> product(const std::vector<S>& a, const std::vector<S>& b, int64_t m, int64_t k,
                       int64_t n) {
  std::vector<S> c(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t x = 0; x < k; ++x) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + x] * b[x * n + j];
    }
  }
  return c;
}

template <class S>
std::vector<S> newton_schulz(std::vector<S> x, int64_t rows, int64_t columns) {
  S squares = 0;
  for (const S& v : x) squares += v * v;
  for (S& v : x) v /= std::sqrt(squares);
  for (int step = 0; step < 5; ++step) {
    std::vector<S> transposed(x.size());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) transposed[j * rows + i] = x[i * columns + j];
    }
    const auto gram = product(x, transposed, rows, columns, rows);
    const auto first = product(gram, x, rows, rows, columns);
    const auto second = product(gram, first, rows, rows, columns);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = 3.4445 * x[i] - 4.7750 * first[i] + 2.0315 * second[i];
    }
  }
  return x;
}

template <class S>
void muon_update(std::vector<S>& w, std::vector<S>& m, const std::vector<S>& gradient, int64_t rows,
                 int64_t columns, const MuonSettings& s) {
  const double momentum = s.momentum, lr = s.learning_rate, decay = s.weight_decay;
  std::vector<S> u(w.size());
  for (size_t i = 0; i < w.size(); ++i) {
    const S g = gradient[i] * static_cast<double>(s.gradient_scale);
    m[i] = momentum * m[i] + g;
    u[i] = s.nesterov ? g + momentum * m[i] : m[i];
  }
  const auto o = newton_schulz(u, rows, columns);
  const double size = 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
  for (size_t i = 0; i < w.size(); ++i) w[i] -= lr * (size * o[i] + decay * w[i]);
}

}  // namespace zaya::reference
