#pragma once
// Decides whether a step's gradient may move the weights: not when the loss or a gradient is not
// finite, and not when the gradient's norm spikes beyond a factor of its running mean.

#include <string>

#include "optim/optimizer_config.h"

namespace zaya {

class StepGuard {
 public:
  explicit StepGuard(const OptimizerConfig& config)
      : factor_(config.spike_factor), warmup_(config.spike_warmup_steps) {}

  // Why the step must be skipped; empty when it may be taken. Changes nothing.
  std::string objection(double loss, double gradient_norm) const;
  // Feeds the running mean with the norm of a step that was taken.
  void accept(double gradient_norm);

  double mean() const { return mean_; }
  int64_t count() const { return count_; }
  void restore(double mean, int64_t count) {
    mean_ = mean;
    count_ = count;
  }

 private:
  double factor_;
  int64_t warmup_;
  double mean_ = 0;
  int64_t count_ = 0;
};

}  // namespace zaya
