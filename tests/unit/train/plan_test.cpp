#include "train/plan.h"

#include <algorithm>
#include <cmath>

#include "train/plan_text.h"
#include "unit/train/small_recipe.h"

namespace zaya {
namespace {

using test::small_recipe;

const std::vector<std::string> kRamp = {"phases[0].batch_tokens_start=256",
                                        "phases[0].ramp_tokens=20000"};

Recipe zaya1_base() { return load_recipe(ZAYA_SOURCE_DIR "/recipes/zaya1-base.toml"); }

TEST(StepPlan, PhasesFollowEachOther) {
  const StepPlan plan(small_recipe());
  EXPECT_EQ(plan.total_steps(), 64 + 10);
  EXPECT_EQ(plan.total_tokens(), 65536 + 10 * 2048);
  EXPECT_EQ(plan.at(63).phase, 0);
  const StepInfo first_of_second = plan.at(64);
  EXPECT_EQ(first_of_second.phase, 1);
  EXPECT_EQ(first_of_second.step_in_phase, 0);
  EXPECT_EQ(first_of_second.rows, 8);
  EXPECT_EQ(first_of_second.seq_len, 256);
  EXPECT_EQ(first_of_second.rows_before, 0);
  EXPECT_EQ(first_of_second.tokens_before, 65536);
}

TEST(StepPlan, RowsBeforeCountThePhaseAndTokensBeforeTheRun) {
  const StepInfo info = StepPlan(small_recipe()).at(70);
  EXPECT_EQ(info.rows_before, 6 * 8);
  EXPECT_EQ(info.tokens_before, 65536 + 6 * 2048);
}

TEST(StepPlan, APhaseEndsWithTheStepThatReachesItsTokens) {
  EXPECT_EQ(StepPlan(small_recipe({"phases[0].tokens=65537"})).phases()[0].steps, 65);
  EXPECT_EQ(StepPlan(small_recipe({"phases[0].tokens=1"})).phases()[0].steps, 1);
}

TEST(StepPlan, MaxStepsStopsTheRunWithoutMovingTheSchedule) {
  const StepPlan whole(small_recipe()), part(small_recipe({"max_steps=70"}));
  EXPECT_EQ(part.total_steps(), 70);
  EXPECT_EQ(part.planned_steps(), 74);
  EXPECT_EQ(part.total_tokens(), 65536 + 6 * 2048);
  EXPECT_EQ(part.at(69).learning_rate_factor, whole.at(69).learning_rate_factor);
  EXPECT_EQ(StepPlan(small_recipe({"max_steps=1000"})).total_steps(), 74);
}

// The definition in plan.h, step by step.
TEST(StepPlan, TheRampIsExact) {
  for (int64_t ramp : {1000, 20000, 54321, 65536}) {
    const Recipe recipe = small_recipe(
        {"phases[0].batch_tokens_start=256", fmt::format("phases[0].ramp_tokens={}", ramp)});
    const StepPlan plan(recipe);
    int64_t rows_before = 0, step = 0;
    for (; rows_before * 128 < 65536; ++step) {
      const int64_t tokens = std::min(rows_before * 128, ramp);
      const int64_t rows = 2 + 6 * tokens / ramp;
      ASSERT_LT(step, plan.phases()[0].steps);
      ASSERT_EQ(plan.at(step).rows, rows) << "ramp " << ramp << " step " << step;
      ASSERT_EQ(plan.at(step).rows_before, rows_before);
      rows_before += rows;
    }
    EXPECT_EQ(plan.phases()[0].steps, step);
    EXPECT_EQ(plan.phases()[0].rows, rows_before);
  }
}

TEST(StepPlan, ARampShorterThanAStepJumpsToTheFullBatch) {
  const StepPlan plan(
      small_recipe({"phases[0].batch_tokens_start=256", "phases[0].ramp_tokens=1"}));
  EXPECT_EQ(plan.at(0).rows, 2);
  EXPECT_EQ(plan.at(1).rows, 8);
}

TEST(StepPlan, ARampOfTrillionsOfTokensDoesNotOverflow) {
  const StepPlan plan(zaya1_base());
  const PhasePlan& phase = plan.phases()[0];
  EXPECT_EQ(phase.runs.front().rows, 512);
  EXPECT_EQ(phase.runs.back().rows, 4096);
  // The full batch begins with the first step after 200 B tokens.
  const int64_t ramped = phase.runs.back().rows_before * 4096;
  EXPECT_GE(ramped, 200'000'000'000);
  EXPECT_LT(ramped, 200'000'000'000 + 4096 * 4096);
}

TEST(StepPlan, TheScheduleRunsOverAllPhases) {
  const StepPlan plan(small_recipe(
      {"optimizer.warmup_steps=4", "optimizer.decay_fraction=0.5", "optimizer.final_fraction=0"}));
  ASSERT_EQ(plan.segments().size(), 1u);
  EXPECT_DOUBLE_EQ(plan.at(0).learning_rate_factor, 0.25);
  EXPECT_DOUBLE_EQ(plan.at(37).learning_rate_factor, 1);
  EXPECT_NEAR(plan.at(73).learning_rate_factor, 1.0 / 37, 1e-15);  // rounding of 1 - 36 / 37
}

TEST(StepPlan, APhaseCanScaleAndRestartTheSchedule) {
  const StepPlan plan(
      small_recipe({"optimizer.warmup_steps=4", "optimizer.decay_fraction=0.5",
                    "phases[1].learning_rate_factor=0.5", "phases[1].restart_schedule=true"}));
  ASSERT_EQ(plan.segments().size(), 2u);
  EXPECT_EQ(plan.segments()[0].schedule.total_steps, 64);
  EXPECT_EQ(plan.segments()[1].schedule.total_steps, 10);
  EXPECT_DOUBLE_EQ(plan.at(64).learning_rate_factor, 0.5 * 0.25);
  EXPECT_DOUBLE_EQ(plan.at(68).learning_rate_factor, 0.5);
}

TEST(StepPlan, AWarmupInTokensEndsWithTheStepThatReachesThem) {
  std::vector<std::string> overrides = kRamp;
  overrides.push_back("optimizer.warmup_tokens=3000");
  const StepPlan plan(small_recipe(overrides));
  const int64_t warmup = plan.segments()[0].schedule.warmup_steps;
  EXPECT_LT(plan.tokens_before(warmup - 1), 3000);
  EXPECT_GE(plan.tokens_before(warmup), 3000);
}

TEST(StepPlan, TheEndOfThePlanHasTokensButNoStep) {
  const StepPlan plan(small_recipe());
  EXPECT_EQ(plan.tokens_before(74), plan.total_tokens());
  EXPECT_THROW(plan.at(74), ContractError);
  EXPECT_THROW(plan.at(-1), ContractError);
}

TEST(PlanText, Zaya1BaseHasThePublishedSizeAndPhases) {
  const Recipe recipe = zaya1_base();
  const StepPlan plan(recipe);
  const std::string text =
      plan_text(recipe, plan, memory_plan(recipe, DType::bf16, 0), DType::bf16);
  EXPECT_NE(text.find("8.840 B parameters, 8.303 B without embeddings, 0.754 B active per token"),
            std::string::npos)
      << text;
  for (const char* tokens : {"8.000 T", "4.000 T", "1.200 T"})
    EXPECT_NE(text.find(tokens), std::string::npos) << text;
}

TEST(PlanText, MemoryCountsEachKindOfStorage) {
  const Recipe recipe = zaya1_base();
  const MemoryPlan memory = memory_plan(recipe, DType::bf16, 1000);
  const ParameterCounts counts = count_parameters(recipe.model);
  EXPECT_EQ(memory.weights, 4 * counts.total);
  EXPECT_EQ(memory.gradients, 4 * counts.total);
  EXPECT_GT(memory.compute_copies, 2 * counts.total * 99 / 100);
  // One moment for matrices, two for embeddings and the little rest.
  const double embedding = static_cast<double>(counts.total - counts.without_embeddings);
  EXPECT_NEAR(static_cast<double>(memory.optimizer),
              4.0 * static_cast<double>(counts.total) + 4 * embedding, 1e9);
  EXPECT_EQ(memory_plan(recipe, DType::f32, 1000).compute_copies, 0);
  EXPECT_EQ(memory.total(),
            memory.weights + memory.gradients + memory.compute_copies + memory.optimizer + 1000);
}

TEST(PlanText, CountsAndBytesAreShort) {
  EXPECT_EQ(short_count(450), "450");
  EXPECT_EQ(short_count(8.84e9), "8.840 B");
  EXPECT_EQ(short_count(7.54e8, 1e9), "0.754 B");
  EXPECT_EQ(short_bytes(512), "512 B");
  EXPECT_EQ(short_bytes(1536), "1.5 KiB");
}

}  // namespace
}  // namespace zaya
