#include "train/step_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace zaya {

std::string StepGuard::objection(double loss, double gradient_norm) const {
  if (!std::isfinite(loss)) return fmt::format("the loss is {}", loss);
  if (!std::isfinite(gradient_norm)) return fmt::format("the gradient norm is {}", gradient_norm);
  if (factor_ > 0 && count_ >= warmup_ && gradient_norm > factor_ * mean_)
    return fmt::format("the gradient norm {:.4g} is more than {:g} times its running mean {:.4g}",
                       gradient_norm, factor_, mean_);
  return "";
}

void StepGuard::accept(double gradient_norm) {
  constexpr int64_t kHorizon = 100;  // steps the mean looks back
  count_ += 1;
  mean_ += (gradient_norm - mean_) / static_cast<double>(std::min(count_, kHorizon));
}

}  // namespace zaya
