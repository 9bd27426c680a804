#include "data/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/hash.h"
#include "core/random.h"

namespace zaya {

namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

// Two integers to one, with every bit of both mattering.
uint64_t combine(uint64_t key, uint64_t value) {
  return mix64(key + kGolden * (value + 1)) ^ std::rotl(key, 23);
}

uint64_t epoch_key(uint64_t seed, int32_t source, int64_t phase, int64_t epoch) {
  uint64_t key = combine(mix64(seed), static_cast<uint64_t>(source));
  key = combine(key, static_cast<uint64_t>(phase));
  return combine(key, static_cast<uint64_t>(epoch));
}

void check_weights(const std::vector<Source>& sources) {
  double total = 0;
  for (const Source& source : sources) {
    if (!std::isfinite(source.weight) || source.weight < 0) {
      fail("source {}: weight: wanted 0 or more, got {}", source.stream->name(), source.weight);
    }
    total += source.weight;
  }
  if (!std::isfinite(total) || total <= 0) {
    fail("source weights: wanted a positive sum, got {}", total);
  }
}

}  // namespace

std::vector<int64_t> mixture_shares(std::span<const double> weights, int64_t period) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double exact = weight / total * static_cast<double>(period);
    shares.push_back(static_cast<int64_t>(std::floor(exact)));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  const int64_t given = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  for (int64_t i = 0; i < period - given; ++i) ++shares[order[static_cast<size_t>(i)]];
  return shares;
}

// A Feistel network over the smallest even number of bits that holds `size`; a value outside
// [0, size) goes through it again until it falls inside (cycle walking), fewer than four times on
// average. Eight rounds, because the halves of small domains have few bits to mix.
int64_t permute(uint64_t key, int64_t index, int64_t size) {
  ZAYA_REQUIRE(index >= 0 && index < size);
  const int half = (std::bit_width(static_cast<uint64_t>(size - 1)) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < 8; ++round) {
      const uint64_t mixed = left ^ (mix64(key + kGolden * (round + 1) + right) & mask);
      left = right;
      right = mixed;
    }
    value = left << half | right;
  } while (value >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(value);
}

Sampler::Sampler(std::vector<Source> sources, uint64_t seed, int64_t phase, int64_t seq_len)
    : sources_(std::move(sources)), seed_(seed), phase_(phase), seq_len_(seq_len) {
  if (seq_len_ < 1) fail("sequence length: wanted 1 or more, got {}", seq_len_);
  check_weights(sources_);
  std::vector<double> weights;
  for (const Source& source : sources_) weights.push_back(source.weight);
  shares_ = mixture_shares(weights, kMixturePeriod);
  for (size_t s = 0; s < sources_.size(); ++s) {
    const TokenStream& stream = *sources_[s].stream;
    windows_.push_back(stream.token_count() < 1 ? 0 : (stream.token_count() - 1) / seq_len_);
    if (weights[s] == 0) continue;
    if (windows_[s] == 0) {
      fail(
          "source {} holds {} tokens, a window needs {} (one more than the sequence length): "
          "wanted "
          "more text or shorter sequences",
          stream.name(), stream.token_count(), seq_len_ + 1);
    }
    if (shares_[s] == 0) {
      fail("source {}: weight {} is less than one sample in {}", stream.name(), weights[s],
           kMixturePeriod);
    }
  }
  // Smooth weighted round robin: each slot goes to the source that is furthest behind its share.
  std::vector<int64_t> credit(sources_.size(), 0);
  std::vector<int32_t> taken(sources_.size(), 0);
  for (int64_t slot = 0; slot < kMixturePeriod; ++slot) {
    for (size_t s = 0; s < credit.size(); ++s) credit[s] += shares_[s];
    const auto next = std::max_element(credit.begin(), credit.end()) - credit.begin();
    credit[static_cast<size_t>(next)] -= kMixturePeriod;
    slots_.push_back({static_cast<int32_t>(next), taken[static_cast<size_t>(next)]++});
  }
}

SampleId Sampler::sample_at(int64_t n) const {
  ZAYA_REQUIRE(n >= 0);
  const Slot slot = slots_[static_cast<size_t>(n % kMixturePeriod)];
  const size_t source = static_cast<size_t>(slot.source);
  const int64_t k = n / kMixturePeriod * shares_[source] + slot.rank;
  const int64_t epoch = k / windows_[source];
  const uint64_t key = epoch_key(seed_, slot.source, phase_, epoch);
  return {slot.source, epoch, permute(key, k % windows_[source], windows_[source])};
}

uint64_t extend_digest(uint64_t digest, int64_t phase, std::span<const SampleId> samples) {
  for (const SampleId& sample : samples) {
    const uint64_t words[] = {
        digest, static_cast<uint64_t>(phase), static_cast<uint64_t>(sample.source),
        static_cast<uint64_t>(sample.epoch), static_cast<uint64_t>(sample.window)};
    digest = xxh3(words, sizeof words);
  }
  return digest;
}

uint64_t extend_digest(uint64_t digest, const Sampler& sampler, int64_t begin, int64_t end) {
  ZAYA_REQUIRE(begin >= 0);
  // The samples are independent of each other; only the chain has an order.
  constexpr int64_t kBlock = int64_t{1} << 16;
  std::vector<SampleId> samples;
  for (int64_t first = begin; first < end; first += kBlock) {
    const int64_t count = std::min(kBlock, end - first);
    samples.resize(static_cast<size_t>(count));
#pragma omp parallel for schedule(static) if (count > 1024)
    for (int64_t i = 0; i < count; ++i) {
      samples[static_cast<size_t>(i)] = sampler.sample_at(first + i);
    }
    digest = extend_digest(digest, sampler.phase(), samples);
  }
  return digest;
}

}  // namespace zaya
