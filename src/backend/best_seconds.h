#pragma once

#include <algorithm>
#include <chrono>

namespace zaya {

// The shortest of some calls, three at least and as many as fill `at_least` seconds: another
// process's work makes a call longer, never shorter. A call before them touches the memory.
template <class F>
double best_seconds(double at_least, F&& call) {
  using Clock = std::chrono::steady_clock;
  call();
  double best = 1e30, spent = 0;
  for (int i = 0; i < 3 || spent < at_least; ++i) {
    const Clock::time_point start = Clock::now();
    call();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

}  // namespace zaya
