#include "train/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ceil_div.h"
#include "core/error.h"

namespace zaya {
namespace {

// The fewest sequences after which a step has `rows` rows: the smallest n with
// (full - start) * n * seq_len >= (rows - start) * ramp_tokens. The products pass 64 bits for ramps
// of trillions of tokens.
int64_t ramp_threshold(const Phase& phase, int64_t start, int64_t rows) {
  const auto wanted = static_cast<unsigned __int128>(rows - start) *
                      static_cast<unsigned __int128>(phase.ramp_tokens);
  const auto each = static_cast<unsigned __int128>(phase.batch_rows() - start) *
                    static_cast<unsigned __int128>(phase.seq_len);
  return static_cast<int64_t>(ceil_div(wanted, each));
}

PhasePlan plan_phase(const Phase& phase) {
  constexpr int64_t endless = std::numeric_limits<int64_t>::max();
  const int64_t full = phase.batch_rows();
  const int64_t start =
      phase.batch_tokens_start > 0 ? phase.batch_tokens_start / phase.seq_len : full;
  const int64_t rows_wanted = phase.tokens > 0 ? ceil_div(phase.tokens, phase.seq_len) : endless;
  const int64_t steps_wanted = phase.steps > 0 ? phase.steps : endless;
  PhasePlan plan;
  plan.seq_len = phase.seq_len;
  for (int64_t rows = start; plan.rows < rows_wanted && plan.steps < steps_wanted; ++rows) {
    // The largest batch that the sequences so far allow; a step may pass several thresholds.
    while (rows < full && ramp_threshold(phase, start, rows + 1) <= plan.rows) ++rows;
    int64_t steps = std::min(steps_wanted - plan.steps, ceil_div(rows_wanted - plan.rows, rows));
    if (rows < full)
      steps = std::min(steps, ceil_div(ramp_threshold(phase, start, rows + 1) - plan.rows, rows));
    plan.runs.push_back({plan.steps, rows, plan.rows});
    plan.steps += steps;
    plan.rows += steps * rows;
  }
  return plan;
}

// The last element that starts at or before `step`.
template <class T>
const T& last_starting_by(const std::vector<T>& items, int64_t step) {
  auto after = std::upper_bound(items.begin(), items.end(), step,
                                [](int64_t s, const T& item) { return s < item.first_step; });
  ZAYA_REQUIRE(after != items.begin());
  return *(after - 1);
}

}  // namespace

StepPlan::StepPlan(const Recipe& recipe) {
  int64_t tokens = 0;
  for (const Phase& phase : recipe.phases) {
    PhasePlan plan = plan_phase(phase);
    plan.first_step = planned_steps_;
    plan.tokens_before = tokens;
    planned_steps_ += plan.steps;
    tokens += plan.tokens();
    phases_.push_back(std::move(plan));
    phase_factors_.push_back(phase.learning_rate_factor);
  }
  total_steps_ = recipe.max_steps > 0 ? std::min(recipe.max_steps, planned_steps_) : planned_steps_;
  add_segments(recipe);
}

void StepPlan::add_segments(const Recipe& recipe) {
  const OptimizerConfig& optimizer = recipe.optimizer;
  for (size_t i = 0; i < phases_.size(); ++i) {
    if (i == 0 || recipe.phases[i].restart_schedule)
      segments_.push_back({phases_[i].first_step, {}});
    phases_[i].segment = segments_.size() - 1;
    segments_.back().schedule.total_steps += phases_[i].steps;
  }
  for (ScheduleSegment& segment : segments_) {
    Schedule& schedule = segment.schedule;
    schedule.kind = optimizer.schedule;
    schedule.final_factor = optimizer.final_fraction;
    schedule.warmup_steps =
        optimizer.warmup_tokens > 0
            ? steps_to_tokens(segment.first_step, schedule.total_steps, optimizer.warmup_tokens)
            : optimizer.warmup_steps;
    schedule.decay_steps =
        std::llround(optimizer.decay_fraction * static_cast<double>(schedule.total_steps));
  }
}

// The fewest steps from first_step on that see `tokens` tokens; steps + 1 when `steps` are too few.
int64_t StepPlan::steps_to_tokens(int64_t first_step, int64_t steps, int64_t tokens) const {
  const int64_t target = tokens_before(first_step) + tokens;
  int64_t low = 0, high = steps + 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const bool enough = middle > steps || tokens_before(first_step + middle) >= target;
    if (enough) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

int64_t StepPlan::tokens_before(int64_t step) const {
  ZAYA_REQUIRE(step >= 0 && step <= planned_steps_);
  const PhasePlan& phase = last_starting_by(phases_, step);
  const StepRun& run = last_starting_by(phase.runs, step - phase.first_step);
  const int64_t rows = run.rows_before + (step - phase.first_step - run.first_step) * run.rows;
  return phase.tokens_before + rows * phase.seq_len;
}

StepInfo StepPlan::at(int64_t step) const {
  ZAYA_REQUIRE(step >= 0 && step < planned_steps_);
  const PhasePlan& phase = last_starting_by(phases_, step);
  const auto index = static_cast<size_t>(&phase - phases_.data());
  StepInfo info;
  info.step = step;
  info.phase = static_cast<int64_t>(index);
  info.step_in_phase = step - phase.first_step;
  const StepRun& run = last_starting_by(phase.runs, info.step_in_phase);
  info.seq_len = phase.seq_len;
  info.rows = run.rows;
  info.rows_before = run.rows_before + (info.step_in_phase - run.first_step) * run.rows;
  info.tokens_before = phase.tokens_before + info.rows_before * phase.seq_len;
  const ScheduleSegment& segment = segments_[phase.segment];
  info.learning_rate_factor =
      phase_factors_[index] * schedule_factor(segment.schedule, step - segment.first_step);
  return info;
}

}  // namespace zaya
