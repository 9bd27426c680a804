#pragma once
// The steps of a run as a pure function of its recipe: which phase a step is in, how many rows it
// has, what came before it and how its learning rates are scaled.

#include <cstdint>
#include <vector>

#include "optim/schedule.h"
#include "train/recipe.h"

namespace zaya {

struct StepInfo {
  int64_t step = 0;  // of the run, from 0
  int64_t phase = 0;
  int64_t step_in_phase = 0;
  int64_t seq_len = 0;
  int64_t rows = 0;           // sequences in this step, over all processes
  int64_t rows_before = 0;    // sequences of this phase before this step
  int64_t tokens_before = 0;  // tokens of the run before this step
  double learning_rate_factor = 0;

  int64_t tokens() const { return rows * seq_len; }
};

// Steps of a phase that have the same number of rows.
struct StepRun {
  int64_t first_step = 0;  // in the phase
  int64_t rows = 0;
  int64_t rows_before = 0;
};

struct PhasePlan {
  int64_t first_step = 0;  // of the run
  int64_t steps = 0;
  int64_t rows = 0;  // sequences in all
  int64_t seq_len = 0;
  int64_t tokens_before = 0;
  size_t segment = 0;  // which stretch of the schedule
  std::vector<StepRun> runs;

  int64_t tokens() const { return rows * seq_len; }
};

// The stretch of phases from one restart of the schedule to the next.
struct ScheduleSegment {
  int64_t first_step = 0;
  Schedule schedule;
};

class StepPlan {
 public:
  // `recipe` comes from load_recipe: its phases have been checked.
  //
  // The batch ramp: a step before which the phase has seen n tokens has
  //   start + floor((full - start) * min(n / ramp_tokens, 1))   rows, start and full in rows.
  // A phase given in tokens ends with the step that reaches them.
  explicit StepPlan(const Recipe& recipe);

  // Steps of the run: of all phases, or max_steps where that is less.
  int64_t total_steps() const { return total_steps_; }
  int64_t total_tokens() const { return tokens_before(total_steps_); }
  // Steps of all phases, whatever max_steps says.
  int64_t planned_steps() const { return planned_steps_; }

  // step < planned_steps().
  StepInfo at(int64_t step) const;
  // Tokens of steps 0 .. step - 1; step <= planned_steps().
  int64_t tokens_before(int64_t step) const;

  const std::vector<PhasePlan>& phases() const { return phases_; }
  const std::vector<ScheduleSegment>& segments() const { return segments_; }

 private:
  void add_segments(const Recipe& recipe);
  int64_t steps_to_tokens(int64_t first_step, int64_t steps, int64_t tokens) const;

  std::vector<PhasePlan> phases_;
  std::vector<ScheduleSegment> segments_;
  std::vector<double> phase_factors_;
  int64_t planned_steps_ = 0;
  int64_t total_steps_ = 0;
};

}  // namespace zaya
