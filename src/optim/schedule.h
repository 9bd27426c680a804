#pragma once
// Learning-rate schedules: pure functions from the step to a factor on every learning rate.

#include <array>
#include <cstdint>
#include <string_view>

namespace zaya {

enum class ScheduleKind { wsd, cosine, constant };
constexpr auto enum_names(ScheduleKind) {
  return std::to_array<std::string_view>({"wsd", "cosine", "constant"});
}

struct Schedule {
  ScheduleKind kind = ScheduleKind::wsd;
  int64_t total_steps = 0;   // steps 0 .. total_steps - 1
  int64_t warmup_steps = 0;  // 0: no warm-up
  int64_t decay_steps = 0;   // wsd only: the last steps, in which the factor falls
  double final_factor = 0;   // wsd and cosine: what the factor reaches when the last step is done
};

// Warm-up: step s of w has (s + 1) / w, so that no step is wasted at zero and step w - 1 has 1.
// Then, with p the share of the falling part that is done before this step,
//   wsd       1, and in the last decay_steps steps  1 + (final - 1) p  (warmup-stable-decay,
//   MiniCPM,
//             arXiv 2404.06395, with a linear fall)
//   cosine    final + (1 - final) (1 + cos(pi p)) / 2  from the end of the warm-up on
//   constant  1
// Where warm-up and fall overlap the smaller one counts. From total_steps on: final_factor.
double schedule_factor(const Schedule& schedule, int64_t step);

}  // namespace zaya
