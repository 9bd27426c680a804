#include "train/step_guard.h"

#include <gtest/gtest.h>

#include <cmath>

namespace zaya {
namespace {

OptimizerConfig spikes(double factor, int64_t warmup) {
  OptimizerConfig config;
  config.spike_factor = factor;
  config.spike_warmup_steps = warmup;
  return config;
}

TEST(StepGuard, ObjectsToALossOrANormThatIsNotFinite) {
  const StepGuard guard(spikes(0, 1));
  EXPECT_EQ(guard.objection(1, 1), "");
  EXPECT_NE(guard.objection(NAN, 1), "");
  EXPECT_NE(guard.objection(1, INFINITY), "");
  EXPECT_NE(guard.objection(1, NAN), "");
}

TEST(StepGuard, ObjectsToASpikeOnlyAfterItsWarmUp) {
  StepGuard guard(spikes(3, 2));
  guard.accept(1);
  EXPECT_EQ(guard.objection(1, 100), "");
  guard.accept(1);
  EXPECT_EQ(guard.objection(1, 2.9), "");
  EXPECT_NE(guard.objection(1, 3.1), "");
}

TEST(StepGuard, TheMeanFollowsTheNormsThatWereTaken) {
  StepGuard guard(spikes(3, 1));
  for (double norm : {2.0, 4.0, 6.0}) guard.accept(norm);
  EXPECT_DOUBLE_EQ(guard.mean(), 4.0);
  StepGuard restored(spikes(3, 1));
  restored.restore(guard.mean(), guard.count());
  restored.accept(8);
  guard.accept(8);
  EXPECT_EQ(restored.mean(), guard.mean());
}

}  // namespace
}  // namespace zaya
