#include "plan/step_bench.h"

#include <gtest/gtest.h>

#include "backend/cpu/instruction_set.h"
#include "plan/memory_use.h"
#include "unit/train/small_recipe.h"

namespace zaya {
namespace {

StepBenchOptions small_step(DType compute, int64_t seq_len = 64) {
  return {.compute = compute, .seq_len = seq_len, .tokens = 256, .repeats = 3};
}

void ignore(std::string_view, double) {}

StepSpeed timed(DType compute = DType::bf16) {
  return time_step(test::small_recipe(), small_step(compute), ignore);
}

TEST(StepBench, EveryGroupOfOpsTakesTime) {
  const StepSpeed speed = timed();
  for (size_t g = 0; g < kOpGroups; ++g)
    EXPECT_GT(speed.groups[g].seconds, 0) << name_of(static_cast<OpGroup>(g));
}

TEST(StepBench, TheGroupsAddUpToTheStep) {
  const StepSpeed speed = timed();
  double seconds = 0, flops = 0;
  for (const OpGroupSpeed& group : speed.groups) {
    seconds += group.seconds;
    flops += group.flops;
  }
  // The step's clock starts before the profile's and stops after it.
  EXPECT_LE(seconds, speed.forward_backward_seconds);
  // Nothing happens between them; a machine that is busy may still take the processor away there.
  EXPECT_GT(seconds, 0.8 * speed.forward_backward_seconds);
  EXPECT_DOUBLE_EQ(flops, speed.flops);
}

TEST(StepBench, TheMedianLiesBetweenFastestAndSlowest) {
  const StepSpeed speed = timed();
  EXPECT_GT(speed.fastest_seconds, 0);
  EXPECT_LE(speed.fastest_seconds, speed.forward_backward_seconds);
  EXPECT_GE(speed.slowest_seconds, speed.forward_backward_seconds);
  EXPECT_GT(speed.optimizer_seconds, 0);
}

TEST(StepBench, TokensASecondAreOfTheSecondsBesideThem) {
  StepSpeed speed;
  speed.tokens = 600;
  speed.forward_backward_seconds = 2;
  speed.optimizer_seconds = 1;
  EXPECT_EQ(speed.tokens_per_second(), 300);
  EXPECT_EQ(speed.training_tokens_per_second(), 200);
  speed.flops = 1e9;
  speed.peak_flops = 2e9;
  EXPECT_EQ(speed.utilisation(), 0.25);
}

TEST(StepBench, EveryTokenWentThroughAnExpert) {
  // A fresh router skips none: the skip slot's bias is -1, and probabilities are at most 1.
  // 2 blocks, 256 tokens, 3 D I multiply-adds of 2 operations in 3 passes; D and I are 64.
  EXPECT_DOUBLE_EQ(timed().groups[static_cast<size_t>(OpGroup::experts)].flops,
                   2.0 * 256 * 3 * 64 * 64 * 6);
}

TEST(StepBench, PredictedMemoryGrowsWithTheBatchAndTheFormat) {
  const Recipe recipe = test::small_recipe();
  StepBenchOptions large = small_step(DType::f32);
  large.tokens *= 64;
  const int64_t small_bytes = predicted_step_bytes(recipe, small_step(DType::f32));
  EXPECT_GT(predicted_step_bytes(recipe, large), small_bytes + (16 << 20));
  // Activations of half the size against copies of the weights: the batch decides.
  StepBenchOptions halves = large;
  halves.compute = DType::bf16;
  EXPECT_LT(predicted_step_bytes(recipe, halves), predicted_step_bytes(recipe, large));
}

// What `zaya bench step` prints. One test, for the ceilings take seconds.
TEST(StepBench, CeilingsAreMeasuredAroundTheStepAndNotInItsMemory) {
  double last = 0;
  const StepSpeed speed = measure_step(test::small_recipe(), small_step(DType::bf16),
                                       [&](std::string_view, double done) {
                                         EXPECT_GE(done, last);
                                         EXPECT_LE(done, 1);
                                         last = done;
                                       });
  EXPECT_GT(last, 0.8);
  EXPECT_EQ(speed.multiplied, multiplied_format(DType::bf16));
  EXPECT_GT(speed.memory_bandwidth, 0);
  EXPECT_GT(speed.utilisation(), 0);
  EXPECT_LT(speed.utilisation(), 1);
  if (!forget_peak_memory()) GTEST_SKIP() << "the kernel does not reset the high water mark";
  // The bandwidth's arrays alone take 384 MiB, several times what this step does.
  EXPECT_GT(speed.peak_bytes, 0);
  EXPECT_LT(speed.peak_bytes, 300 << 20);
  EXPECT_GT(speed.predicted_peak_bytes, 0);
  EXPECT_LT(speed.predicted_peak_bytes, 300 << 20);
}

}  // namespace
}  // namespace zaya
