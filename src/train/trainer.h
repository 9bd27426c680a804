#pragma once
// The training run: a step loop between a loader that reads ahead and checkpoints that commit.

#include <filesystem>
#include <functional>
#include <string>

#include "train/metrics.h"
#include "train/plan.h"
#include "train/recipe.h"

namespace zaya {

struct TrainOptions {
  std::filesystem::path out;  // the run's folder
  std::string resume =
      "auto";  // auto: go on from the newest whole checkpoint; never; or a checkpoint
};

// What a run tells whoever watches it.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void step(const StepMetrics& metrics) = 0;
  virtual void validation(const ValidationMetrics& metrics) = 0;
  virtual void message(const std::string& text) = 0;
  // Asked after every step: true finishes the run with a checkpoint.
  virtual bool stop_requested() = 0;
};

struct TrainResult {
  int64_t steps = 0;  // done in all
  bool complete = false;
  int64_t skipped_steps = 0;
  std::filesystem::path checkpoint;  // the last one
};

// Bytes of activations for the largest micro-batch of a recipe.
int64_t recipe_activation_bytes(const Recipe& recipe, DType compute);

TrainResult train(const Recipe& recipe, const TrainOptions& options, TrainObserver& observer);

}  // namespace zaya
