#pragma once
// Which window of which source is sample n of a phase: a pure function of (seed, phase, n), so the
// order does not depend on processes, batch sizes or restarts. Step and row come in as
// n = samples before the step + row.
//
// A source's stream of N tokens is cut into windows of S + 1 tokens at multiples of S: window i is
// tokens [i S, i S + S], S inputs and their labels. What is left at the end is not trained on.
// Within an epoch each window of a source comes exactly once, in an order given by a keyed
// permutation. Sources take turns by integer shares of kMixturePeriod samples.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/token_stream.h"

namespace zaya {

inline constexpr int64_t kMixturePeriod = 4096;

struct SampleId {
  int32_t source;
  int64_t epoch;
  int64_t window;
  friend bool operator==(const SampleId&, const SampleId&) = default;
};

struct Source {
  std::shared_ptr<const TokenStream> stream;
  double weight = 1;  // relative to the other sources; 0 leaves the source out of the phase
};

class Sampler {
 public:
  // Error for weights that are negative, all zero or below one sample in a period, and for a
  // source with less than one window: "source X holds N tokens, a window needs S + 1".
  Sampler(std::vector<Source> sources, uint64_t seed, int64_t phase, int64_t seq_len);

  SampleId sample_at(int64_t n) const;
  const TokenStream& stream(int32_t source) const { return *sources_[source].stream; }
  int32_t source_count() const { return static_cast<int32_t>(sources_.size()); }
  int64_t phase() const { return phase_; }
  int64_t seq_len() const { return seq_len_; }
  int64_t windows(int32_t source) const { return windows_[source]; }
  // Samples of a source in each period of kMixturePeriod.
  int64_t share(int32_t source) const { return shares_[source]; }

 private:
  struct Slot {
    int32_t source;
    int32_t rank;  // among the slots of its source
  };
  std::vector<Source> sources_;
  uint64_t seed_;
  int64_t phase_;
  int64_t seq_len_;
  std::vector<int64_t> windows_;
  std::vector<int64_t> shares_;
  std::vector<Slot> slots_;  // [kMixturePeriod]
};

// Shares of `period` proportional to the weights, by largest remainder (the lower index wins ties).
std::vector<int64_t> mixture_shares(std::span<const double> weights, int64_t period);

// The index-th element of a permutation of [0, size) that depends on the key.
int64_t permute(uint64_t key, int64_t index, int64_t size);

// The running digest of consumed samples, kept in checkpoints: digest' = xxh3(digest, phase,
// source, epoch, window), sample by sample, starting from 0.
uint64_t extend_digest(uint64_t digest, int64_t phase, std::span<const SampleId> samples);
// The digest after samples [begin, end) of the sampler's phase, from the one before them.
uint64_t extend_digest(uint64_t digest, const Sampler& sampler, int64_t begin, int64_t end);

}  // namespace zaya
