#include "optim/balancing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace zaya {

void balancing_gradient(const Tensor& gradient, std::span<const int64_t> counts) {
  ZAYA_REQUIRE(gradient.size() == static_cast<int64_t>(counts.size()) && counts.size() >= 2);
  float* out = gradient.as<float>();
  const size_t experts = counts.size() - 1;
  const int64_t tokens = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t e = 0; e < experts; ++e)
    out[e] = tokens == 0
                 ? 0.0f
                 : static_cast<float>(static_cast<double>(counts[e]) / static_cast<double>(tokens) -
                                      1.0 / static_cast<double>(experts));
  out[experts] = 0;
}

double load_entropy(std::span<const int64_t> counts) {
  const auto experts = counts.first(counts.size() - 1);
  const int64_t tokens = std::accumulate(experts.begin(), experts.end(), int64_t{0});
  if (tokens == 0 || experts.size() < 2) return tokens == 0 ? 0.0 : 1.0;
  double entropy = 0;
  for (int64_t count : experts) {
    const double p = static_cast<double>(count) / static_cast<double>(tokens);
    if (p > 0) entropy -= p * std::log(p);
  }
  return entropy / std::log(static_cast<double>(experts.size()));
}

}  // namespace zaya
