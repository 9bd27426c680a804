#include "train/data_feed.h"

#include <algorithm>

#include "core/hash.h"

namespace zaya {

DataFeed::DataFeed(const Recipe& recipe, const StepPlan& plan, int32_t vocab_size) : plan_(plan) {
  open_sources(recipe, vocab_size);
  for (size_t phase = 0; phase < recipe.phases.size(); ++phase) {
    const Phase& p = recipe.phases[phase];
    masks_.push_back(p.mask_documents ? DocumentMask::documents : DocumentMask::none);
    samplers_.emplace_back(sources_of(recipe, p), recipe.seed, static_cast<int64_t>(phase),
                           p.seq_len);
  }
}

void DataFeed::open_sources(const Recipe& recipe, int32_t vocab_size) {
  for (const DataSource& source : recipe.data) {
    const auto store = std::make_shared<const TokenStore>(source.path);
    const uint64_t sums[] = {identity_, store->fingerprint()};
    identity_ = xxh3(sums, sizeof sums);
    const auto part = [&](StreamPart which) {
      return std::make_shared<const TokenStream>(store, source.name, vocab_size, which,
                                                 source.holdout_every);
    };
    const bool holds_out = source.holdout_every > 0;
    training_.push_back(part(holds_out ? StreamPart::kept : StreamPart::all));
    if (holds_out && recipe.validates())
      validation_.push_back({source.name, part(StreamPart::held_out)});
  }
  if (!recipe.validates()) return;
  for (const ValidationSource& source : recipe.validation.sources)
    validation_.push_back({source.name, std::make_shared<const TokenStream>(
                                            std::make_shared<const TokenStore>(source.path),
                                            source.name, vocab_size)});
  // Now, and not when the first validation is due.
  for (const ValidationSet& set : validation_) validation_windows(*set.stream, 1);
}

std::vector<Source> DataFeed::sources_of(const Recipe& recipe, const Phase& phase) const {
  std::vector<Source> sources;
  for (size_t i = 0; i < training_.size(); ++i) {
    const auto entry = phase.mixture.find(recipe.data[i].name);
    sources.push_back({training_[i], entry == phase.mixture.end() ? 0.0 : entry->second});
  }
  return sources;
}

bool DataFeed::fill_step(int64_t step, Batch& batch) const {
  if (step >= plan_.total_steps()) return false;
  const StepInfo info = plan_.at(step);
  fill_batch(samplers_[info.phase], info.rows_before, info.rows, masks_[info.phase], batch);
  return true;
}

uint64_t DataFeed::digest_of_steps(int64_t steps) const {
  uint64_t digest = identity_;
  for (size_t phase = 0; phase < samplers_.size(); ++phase) {
    const PhasePlan& p = plan_.phases()[phase];
    const int64_t done = std::clamp<int64_t>(steps - p.first_step, 0, p.steps);
    if (done == 0) break;
    const StepInfo last = plan_.at(p.first_step + done - 1);
    digest = extend_digest(digest, samplers_[phase], 0, last.rows_before + last.rows);
  }
  return digest;
}

}  // namespace zaya
