#pragma once
// How much longer the steps of a tokenizer.json may make a text, one after the other. Without a
// bound, forty of them that double it are a small file that takes all memory.

#include <string>

#include "core/error.h"

namespace zaya {

class HfGrowth {
 public:
  static constexpr double kMax = 4096;
  static constexpr int kMaxSteps = 256;

  // The step at `place` makes at most `factor` bytes of each byte. Error when that is too much.
  void add(double factor, const std::string& place) {
    if (++steps_ > kMaxSteps) fail("{}: wanted at most {} steps, got more", place, kMaxSteps);
    factor_ *= factor;
    if (factor_ > kMax)
      fail("{}: wanted steps that make a text at most {} times longer, got more", place, kMax);
  }

 private:
  double factor_ = 1;
  int steps_ = 0;
};

}  // namespace zaya
