#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace zaya {
namespace {

// How much of the falling part [begin, end) is done before `step`.
double progress(int64_t step, int64_t begin, int64_t end) {
  if (step >= end) return 1;
  if (step <= begin) return 0;
  return static_cast<double>(step - begin) / static_cast<double>(end - begin);
}

double falling_factor(const Schedule& s, int64_t step) {
  switch (s.kind) {
    case ScheduleKind::wsd: {
      const double p = progress(step, s.total_steps - s.decay_steps, s.total_steps);
      return s.decay_steps == 0 ? 1 : 1 + (s.final_factor - 1) * p;
    }
    case ScheduleKind::cosine: {
      const double p = progress(step, s.warmup_steps, s.total_steps);
      return s.final_factor + (1 - s.final_factor) * (1 + std::cos(std::numbers::pi * p)) / 2;
    }
    case ScheduleKind::constant:
      return 1;
  }
  return 1;
}

}  // namespace

double schedule_factor(const Schedule& schedule, int64_t step) {
  ZAYA_REQUIRE(step >= 0 && schedule.warmup_steps >= 0 && schedule.decay_steps >= 0);
  const double falling = falling_factor(schedule, step);
  if (step >= schedule.warmup_steps) return falling;
  const double warmup = static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  return std::min(warmup, falling);
}

}  // namespace zaya
