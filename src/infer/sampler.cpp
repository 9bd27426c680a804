#include "infer/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"

namespace zaya {
namespace {

int32_t likeliest(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// How many of the leading weights together reach `share` of their sum.
size_t nucleus(std::span<const double> weights, double share) {
  const double wanted = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    if ((sum += weights[i]) >= wanted) return i + 1;
  return weights.size();
}

}  // namespace

void check_sampling(const SamplingOptions& o) {
  if (!(o.temperature >= 0) || !std::isfinite(o.temperature))
    fail("--temperature: wanted 0 or more, got {}", o.temperature);
  if (o.top_k < 0) fail("--top-k: wanted 0 (all) or more, got {}", o.top_k);
  if (!(o.top_p > 0) || o.top_p > 1)
    fail("--top-p: wanted more than 0 and at most 1, got {}", o.top_p);
}

int32_t TokenSampler::next(const Tensor& tensor) {
  const std::span<const float> logits(tensor.as<float>(), static_cast<size_t>(tensor.size()));
  if (!std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }))
    fail("the model's logits are not finite: its weights are damaged, or bf16 overflowed");
  if (options_.temperature == 0) return likeliest(logits);

  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  if (options_.top_k > 0 && options_.top_k < static_cast<int64_t>(order_.size())) {
    std::partial_sort(order_.begin(), order_.begin() + options_.top_k, order_.end(), likelier);
    order_.resize(static_cast<size_t>(options_.top_k));
  } else {
    std::sort(order_.begin(), order_.end(), likelier);
  }
  const double top = logits[order_.front()];
  weights_.resize(order_.size());
  for (size_t i = 0; i < order_.size(); ++i)
    weights_[i] = std::exp((logits[order_[i]] - top) / static_cast<double>(options_.temperature));

  const size_t kept = nucleus(weights_, options_.top_p);
  const double total = std::accumulate(weights_.begin(), weights_.begin() + kept, 0.0);
  double left = Random(options_.seed, "sampling").uniform(draws_++) * total;
  for (size_t i = 0; i + 1 < kept; ++i)
    if ((left -= weights_[i]) < 0) return order_[i];
  return order_[kept - 1];
}

}  // namespace zaya
