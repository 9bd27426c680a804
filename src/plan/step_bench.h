#pragma once
// The speed of a training step on fixed random tokens, by group of ops, beside the machine's
// ceilings measured in the same run.

#include <array>
#include <string_view>

#include "backend/profile.h"
#include "plan/gemm_bench.h"
#include "train/recipe.h"

namespace zaya {

struct StepBenchOptions {
  DType compute = DType::f32;
  int64_t seq_len = 0;
  int64_t tokens = 0;  // of a step; a multiple of seq_len
  int repeats = 5;
};

struct OpGroupSpeed {
  double seconds = 0;  // of one forward and backward
  double flops = 0;    // the model's (model/flops.h)
};

// What people read: "projections", "head + loss", ...
std::string_view name_of(OpGroup group);

struct StepSpeed {
  int64_t tokens = 0;
  double forward_backward_seconds = 0;              // the median
  double fastest_seconds = 0, slowest_seconds = 0;  // what that median is of
  double optimizer_seconds = 0;  // the median: gradient norm, update, compute copies
  std::array<OpGroupSpeed, kOpGroups> groups{};  // of the median step
  double flops = 0;                              // of a forward and backward
  DType multiplied = DType::f32;
  double peak_flops = 0;        // a second, in the format products are multiplied in
  double memory_bandwidth = 0;  // bytes a second
  int64_t predicted_peak_bytes = 0;
  int64_t peak_bytes = 0;  // 0 where the system does not say

  double utilisation() const { return flops / forward_backward_seconds / peak_flops; }
  double tokens_per_second() const {
    return static_cast<double>(tokens) / forward_backward_seconds;
  }
  double training_tokens_per_second() const {
    return static_cast<double>(tokens) / (forward_backward_seconds + optimizer_seconds);
  }
};

// Bytes that a step with these options takes, the process's own included.
int64_t predicted_step_bytes(const Recipe& recipe, const StepBenchOptions& options);

// Trains on the same random batch `repeats` times after two steps to warm up, with learning rates
// of 0; no file is read or written. Without the ceilings: those stay 0.
StepSpeed time_step(const Recipe& recipe, const StepBenchOptions& options,
                    const BenchProgress& progress);
// The same, and the ceilings. The peak of memory is the step's alone.
StepSpeed measure_step(const Recipe& recipe, const StepBenchOptions& options,
                       const BenchProgress& progress);

}  // namespace zaya
