#pragma once
// What `zaya bench` says: once as JSON, once for people.

#include <string>

#include "core/json.h"
#include "plan/gemm_bench.h"
#include "plan/step_bench.h"

namespace zaya {

// What was measured on what.
struct BenchSetting {
  Recipe recipe;
  std::string recipe_text;  // "bench-small (built in)"
  StepBenchOptions step;
  std::string dtype_text;  // "bf16: auto, and this machine multiplies bf16"
};

std::string gemm_text(const BenchSetting& setting, const GemmSpeed& speed);
Json gemm_json(const BenchSetting& setting, const GemmSpeed& speed);
std::string step_text(const BenchSetting& setting, const StepSpeed& speed);
Json step_json(const BenchSetting& setting, const StepSpeed& speed);

}  // namespace zaya
