#include "infer/ranking.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "core/ceil_div.h"
#include "core/error.h"

namespace zaya {
namespace {

constexpr size_t kSorted = 32;  // so few candidates are sorted

constexpr int kGroupShift = 20;
constexpr uint32_t kFirstGroup =
    std::bit_cast<uint32_t>(static_cast<float>(kFullWeight)) >> kGroupShift;

// weight > 0. Weights have no more bits than a float.
size_t group_of(uint64_t weight) {
  return kFirstGroup - (std::bit_cast<uint32_t>(static_cast<float>(weight)) >> kGroupShift);
}
// A bound below every share that weighs `weight` or more.
float share_of(uint64_t weight) {
  return (static_cast<float>(weight) - 0.5f) / static_cast<float>(kFullWeight);
}
// The smallest weight of a group.
uint64_t least_of(size_t group) {
  return static_cast<uint64_t>(
      std::bit_cast<float>((kFirstGroup - static_cast<uint32_t>(group)) << kGroupShift));
}

}  // namespace

uint64_t weight_of(float share) {
  // Adding leaves the rounded number in the low bits.
  constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52
  const double sum = static_cast<double>(share) * static_cast<double>(kFullWeight) + kRounder;
  return std::bit_cast<uint64_t>(sum) - std::bit_cast<uint64_t>(kRounder);
}

void BlockMaxima::build(std::span<const float> values, std::vector<float> maxima) {
  ZAYA_REQUIRE(!values.empty() && maxima.size() == ceil_div(values.size(), kBlock));
  values_ = values;
  maxima_ = std::move(maxima);
  top_ = *std::max_element(maxima_.begin(), maxima_.end());
}

int32_t BlockMaxima::first_top() const {
  const auto block = std::find(maxima_.begin(), maxima_.end(), top_) - maxima_.begin();
  const auto begin = values_.begin() + block * static_cast<ptrdiff_t>(kBlock);
  return static_cast<int32_t>(std::find(begin, values_.end(), top_) - values_.begin());
}

float BlockMaxima::bound_of(int64_t k) const {
  ZAYA_REQUIRE(k >= 1);
  if (k > static_cast<int64_t>(maxima_.size())) return -std::numeric_limits<float>::infinity();
  std::vector<float> ordered = maxima_;
  const auto at = ordered.begin() + (k - 1);
  std::nth_element(ordered.begin(), at, ordered.end(), std::greater<>());
  return *at;
}

void BlockMaxima::gather(float bound, std::vector<int32_t>& positions) const {
  size_t count = 0;
  for (size_t block = 0; block < maxima_.size(); ++block) {
    if (!(maxima_[block] >= bound)) continue;
    const size_t begin = block * kBlock, end = std::min(begin + kBlock, values_.size());
    if (positions.size() < count + kBlock) positions.resize(2 * count + kBlock);
    // No branch: whether a value reaches the bound is as good as random.
    for (size_t i = begin; i < end; ++i) {
      positions[count] = static_cast<int32_t>(i);
      count += values_[i] >= bound;
    }
  }
  positions.resize(count);
}

Ranked ranked_at(std::span<Candidate> candidates, uint64_t at) {
  uint64_t begin = 0;
  while (candidates.size() > kSorted) {
    const size_t half = candidates.size() / 2;
    const auto middle = candidates.begin() + static_cast<ptrdiff_t>(half);
    std::nth_element(candidates.begin(), middle, candidates.end());
    uint64_t upper = 0;
    for (const Candidate& c : candidates.first(half)) upper += c.weight;
    const bool above = begin + upper > at;
    if (!above) begin += upper;
    candidates = above ? candidates.first(half) : candidates.subspan(half);
  }
  std::sort(candidates.begin(), candidates.end());
  for (const Candidate& c : candidates) {
    if (begin + c.weight > at) return {c, begin};
    begin += c.weight;
  }
  ZAYA_REQUIRE(!"at is less than the candidates' weight together");
  return {};
}

void Shares::sum_groups(uint64_t least) {
  std::fill(std::begin(sums_), std::end(sums_), 0);
  grouped_ = 0;
  maxima_.gather(share_of(least), positions_);
  for (const int32_t id : positions_) {
    const uint64_t weight = weight_of(shares_[static_cast<size_t>(id)]);
    if (weight < least) continue;
    sums_[group_of(weight)] += weight;
    grouped_ += weight;
  }
}

Ranked Shares::ranked_at(uint64_t at) {
  ZAYA_REQUIRE(at < all_);
  // Mostly the likely tokens reach as far. Those lighter than the last bound weigh less together
  // than what lies behind `at`.
  const uint64_t last = std::max<uint64_t>(1, (all_ - (at + 1)) / shares_.size());
  for (const uint64_t least : {kFullWeight >> 8, kFullWeight >> 16, last})
    if (grouped_ <= at) sum_groups(std::max(least, last));
  size_t group = 0;
  uint64_t begin = 0;
  while (begin + sums_[group] <= at) begin += sums_[group++];
  maxima_.gather(share_of(std::max<uint64_t>(1, least_of(group))), positions_);
  candidates_.clear();
  for (const int32_t id : positions_) {
    const uint64_t weight = weight_of(shares_[static_cast<size_t>(id)]);
    if (weight > 0 && group_of(weight) == group) candidates_.push_back({weight, id});
  }
  Ranked ranked = zaya::ranked_at(candidates_, at - begin);
  ranked.begin += begin;
  return ranked;
}

}  // namespace zaya
