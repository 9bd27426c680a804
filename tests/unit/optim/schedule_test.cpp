#include "optim/schedule.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace zaya {
namespace {

Schedule schedule(ScheduleKind kind) {
  return {
      .kind = kind, .total_steps = 100, .warmup_steps = 10, .decay_steps = 20, .final_factor = 0.1};
}

TEST(Schedule, TheFirstStepIsNotWastedAtZero) {
  for (ScheduleKind kind : {ScheduleKind::wsd, ScheduleKind::cosine, ScheduleKind::constant})
    EXPECT_DOUBLE_EQ(schedule_factor(schedule(kind), 0), 0.1);
}

TEST(Schedule, WarmupEndsAtOne) {
  EXPECT_DOUBLE_EQ(schedule_factor(schedule(ScheduleKind::wsd), 8), 0.9);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule(ScheduleKind::wsd), 9), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule(ScheduleKind::wsd), 10), 1);
}

TEST(Schedule, WithoutWarmupTheFirstStepHasTheFullRate) {
  Schedule s = schedule(ScheduleKind::wsd);
  s.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(schedule_factor(s, 0), 1);
}

TEST(Schedule, WsdIsStableThenFallsInALine) {
  const Schedule s = schedule(ScheduleKind::wsd);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 80), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 81), 1 - 0.9 / 20);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 90), 0.55);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 99), 1 - 0.9 * 19 / 20);
}

TEST(Schedule, WsdWithoutDecayStaysAtOne) {
  Schedule s = schedule(ScheduleKind::wsd);
  s.decay_steps = 0;
  EXPECT_DOUBLE_EQ(schedule_factor(s, 99), 1);
}

TEST(Schedule, CosineIsHalfWayAtHalfTime) {
  const Schedule s = schedule(ScheduleKind::cosine);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 10), 1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 55), 0.55);
}

TEST(Schedule, ConstantStaysAtOne) {
  EXPECT_DOUBLE_EQ(schedule_factor(schedule(ScheduleKind::constant), 99), 1);
}

TEST(Schedule, AfterTheEndTheFinalFactorHolds) {
  EXPECT_DOUBLE_EQ(schedule_factor(schedule(ScheduleKind::wsd), 100), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(schedule(ScheduleKind::cosine), 1000), 0.1);
}

TEST(Schedule, WhereWarmupAndDecayOverlapTheSmallerCounts) {
  const Schedule s = {.kind = ScheduleKind::wsd,
                      .total_steps = 10,
                      .warmup_steps = 10,
                      .decay_steps = 10,
                      .final_factor = 0};
  EXPECT_DOUBLE_EQ(schedule_factor(s, 0), 0.1);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 4), 0.5);
  EXPECT_DOUBLE_EQ(schedule_factor(s, 9), 0.1);
}

TEST(Schedule, ANegativeStepBreaksTheContract) {
  EXPECT_THROW(schedule_factor(schedule(ScheduleKind::wsd), -1), ContractError);
}

}  // namespace
}  // namespace zaya
