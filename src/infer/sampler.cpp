#include "infer/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace zaya {
namespace {

constexpr float kMaxBias = 1e6f;
constexpr float kMaxPenalty = 100.0f;

// The least whole number of at least `part` of the sum, from 1 to the sum.
uint64_t part_of(uint64_t sum, float part) {
  const double wanted = std::ceil(static_cast<double>(sum) * static_cast<double>(part));
  return wanted >= static_cast<double>(sum) ? sum
                                            : std::max<uint64_t>(1, static_cast<uint64_t>(wanted));
}

}  // namespace

std::string flag_name(std::string_view field) {
  std::string name = "--" + std::string(field);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

void check_sampling(const SamplingOptions& o,
                    const std::function<std::string(std::string_view)>& name) {
  const auto wanted = [&](bool holds, std::string_view field, std::string_view what, auto value) {
    if (!holds) fail("{}: wanted {}, got {}", name(field), what, value);
  };
  wanted(o.temperature >= 0 && std::isfinite(o.temperature), "temperature", "0 or more",
         o.temperature);
  wanted(o.top_k >= 0, "top_k", "0 (all) or more", o.top_k);
  wanted(o.top_p > 0 && o.top_p <= 1, "top_p", "more than 0 and at most 1", o.top_p);
  wanted(o.min_p >= 0 && o.min_p <= 1, "min_p", "0 to 1", o.min_p);
  wanted(o.repetition_penalty >= 1 / kMaxPenalty && o.repetition_penalty <= kMaxPenalty,
         "repetition_penalty", fmt::format("{} to {}", 1 / kMaxPenalty, kMaxPenalty),
         o.repetition_penalty);
  for (const LogitBias& b : o.logit_bias)
    wanted(b.bias == -INFINITY || std::abs(b.bias) <= kMaxBias, "logit_bias",
           fmt::format("-inf, or {} to {}", -kMaxBias, kMaxBias), b.bias);
}

TokenSampler::TokenSampler(SamplingOptions options, int32_t tokens)
    : options_(std::move(options)),
      seen_(static_cast<size_t>(tokens)),
      x_(static_cast<size_t>(tokens)),
      shares_(static_cast<size_t>(tokens)) {
  for (const LogitBias& b : options_.logit_bias) ZAYA_REQUIRE(b.id >= 0 && b.id < tokens);
}

void TokenSampler::see(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= seen_.size() || seen_[static_cast<size_t>(id)])
      continue;
    seen_[static_cast<size_t>(id)] = 1;
    seen_ids_.push_back(id);
  }
}

void TokenSampler::forget() {
  for (const int32_t id : seen_ids_) seen_[static_cast<size_t>(id)] = 0;
  seen_ids_.clear();
}

int32_t TokenSampler::next(const Tensor& logits) {
  ZAYA_REQUIRE(logits.size() >= static_cast<int64_t>(x_.size()));
  prepare({logits.as<float>(), x_.size()});
  const int32_t id = options_.temperature == 0 ? largest_.first_top() : draw();
  see({&id, 1});
  return id;
}

void TokenSampler::prepare(std::span<const float> logits) {
  if (!copy_finite(x_, logits))
    fail("the model's logits are not finite: its weights are damaged, or bf16 overflowed");
  for (const LogitBias& b : options_.logit_bias) x_[static_cast<size_t>(b.id)] += b.bias;
  if (const float penalty = options_.repetition_penalty; penalty != 1) {
    for (const int32_t id : seen_ids_) {
      float& x = x_[static_cast<size_t>(id)];
      x = x < 0 ? x * penalty : x / penalty;
    }
  }
  largest_.build(x_);
  if (largest_.top() == -INFINITY) fail("--logit-bias: forbids every token");
}

bool TokenSampler::limits_count() const {
  return options_.top_k > 0 && options_.top_k < static_cast<int64_t>(x_.size());
}

int32_t TokenSampler::draw() {
  const bool few = limits_count();
  if (few) {
    weigh_largest();
  } else {
    shares_.build(x_, largest_.top(), options_.temperature, weight_of(options_.min_p));
    all_ = shares_.all();
    heavy_ = shares_.heavy();
  }
  const auto ranked = [&](uint64_t at) {
    return few ? ranked_at(candidates_, at) : shares_.ranked_at(at);
  };
  // Ranked by weight, top_p and min_p each keep a leading run: the shorter one counts.
  uint64_t kept = heavy_;
  if (options_.top_p < 1) {
    const Ranked last = ranked(part_of(all_, options_.top_p) - 1);
    kept = std::min(kept, last.begin + last.candidate.weight);
  }
  return ranked(Random(options_.seed, "sampling").below(draws_++, kept)).candidate.id;
}

void TokenSampler::weigh_largest() {
  const int64_t k = options_.top_k;
  largest_.gather(largest_.bound_of(k), positions_);
  const auto larger = [&](int32_t a, int32_t b) {
    const float x = x_[static_cast<size_t>(a)], y = x_[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  if (static_cast<int64_t>(positions_.size()) > k) {
    std::nth_element(positions_.begin(), positions_.begin() + k, positions_.end(), larger);
    positions_.resize(static_cast<size_t>(k));
  }
  const uint64_t limit = weight_of(options_.min_p);
  all_ = heavy_ = 0;
  candidates_.clear();
  for (const int32_t id : positions_) {
    const float below = x_[static_cast<size_t>(id)] - largest_.top();
    const uint64_t weight = weight_of(exp_of_negative(below / options_.temperature));
    candidates_.push_back({weight, id});
    all_ += weight;
    if (weight >= limit) heavy_ += weight;
  }
}

}  // namespace zaya
