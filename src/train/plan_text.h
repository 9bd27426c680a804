#pragma once
// What `zaya train --dry-run` shows, and what training shows at its start: the model's size, the
// memory it takes, the data, and the steps of each phase.

#include <cstdint>
#include <string>

#include "core/dtype.h"
#include "train/plan.h"

namespace zaya {

// Bytes, by purpose.
struct MemoryPlan {
  int64_t weights = 0;         // fp32 masters
  int64_t compute_copies = 0;  // bf16, where products run in bf16
  int64_t gradients = 0;       // fp32
  int64_t optimizer = 0;       // one fp32 moment under Muon, two under AdamW
  int64_t activations = 0;     // of the largest micro-batch

  int64_t total() const { return weights + compute_copies + gradients + optimizer + activations; }
};

// `compute` is f32 or bf16; the activations come from the model, which plans them.
MemoryPlan memory_plan(const Recipe& recipe, DType compute, int64_t activation_bytes);

std::string plan_text(const Recipe& recipe, const StepPlan& plan, const MemoryPlan& memory,
                      DType compute);
// The same figures as a JSON object.
std::string plan_json(const Recipe& recipe, const StepPlan& plan, const MemoryPlan& memory,
                      DType compute);

// 8840000000 as "8.840 B", 1234567 as "1.235 M", 512 as "512". The second form takes the unit that
// suits `like`: 754 million beside 8.84 billion is "0.754 B".
std::string short_count(double count);
std::string short_count(double count, double like);
// Powers of 1024: "1.5 GiB".
std::string short_bytes(int64_t bytes);

}  // namespace zaya
