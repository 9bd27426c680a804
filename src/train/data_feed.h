#pragma once
// From a recipe's data sources to the batch of each step, and to validation windows.

#include <memory>
#include <vector>

#include "data/batch.h"
#include "data/sampler.h"
#include "train/plan.h"
#include "train/recipe.h"

namespace zaya {

struct ValidationSet {
  std::string name;
  std::shared_ptr<const TokenStream> stream;
};

// Opens and checks every token store a recipe names. Steps are a pure function of their number;
// calls may come from a loader's thread.
class DataFeed {
 public:
  DataFeed(const Recipe& recipe, const StepPlan& plan, int32_t vocab_size);

  // All rows of a step, one after another, each seq_len tokens. False past the last step.
  bool fill_step(int64_t step, Batch& batch) const;
  // The digest of all samples consumed by steps 0 .. steps - 1; of none, it is that of the stores.
  uint64_t digest_of_steps(int64_t steps) const;
  const std::vector<ValidationSet>& validation() const { return validation_; }

 private:
  void open_sources(const Recipe& recipe, int32_t vocab_size);
  std::vector<Source> sources_of(const Recipe& recipe, const Phase& phase) const;

  const StepPlan& plan_;
  uint64_t identity_ = 0;                                     // of the training stores
  std::vector<DocumentMask> masks_;                           // a phase each
  std::vector<std::shared_ptr<const TokenStream>> training_;  // a source each
  std::vector<Sampler> samplers_;                             // a phase each
  std::vector<ValidationSet> validation_;
};

}  // namespace zaya
