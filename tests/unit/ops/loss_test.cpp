// Legend: R rows, V vocabulary.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/threads.h"
#include "ops/loss/cross_entropy.h"
#include "ops/loss/cross_entropy_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

// Losses of R rows whose labels are 0, 3, 6, ... modulo V, except that row 1 is ignored.
struct CrossEntropy {
  int64_t R, V;
  std::vector<float> storage, losses;
  std::vector<int32_t> labels;
  Tensor logits;

  CrossEntropy(int64_t rows, int64_t vocabulary, int64_t offset = 0, double deviation = 3)
      : R(rows),
        V(vocabulary),
        storage(cast<float>(random_values(rows * vocabulary + offset, 1, deviation))),
        losses(rows, 9.0f),
        labels(rows),
        logits(storage.data() + offset, DType::f32, {rows, vocabulary}) {
    for (int64_t r = 0; r < R; ++r) labels[r] = static_cast<int32_t>(3 * r % V);
    if (R > 1) labels[1] = kIgnoredLabel;
  }
  std::vector<double> expected() const {
    std::vector<double> out(R);
    const std::vector<double> wide(logits.as<float>(), logits.as<float>() + R * V);
    reference::cross_entropy_forward(out.data(), wide.data(), labels.data(), R, V);
    return out;
  }
  void forward() {
    Context ctx;
    cross_entropy_forward(ctx, view(losses, {R}), logits, view(labels, {R}));
  }
};

TEST(CrossEntropy, MatchesTheReferenceAtEveryLengthAndMisalignment) {
  for (int64_t v = 1; v <= 35; ++v) {
    for (int64_t offset : {0, 1, 3}) {
      CrossEntropy c(4, v, offset);
      c.forward();
      // Losses of up to ten, exponentials right to an ulp or two of fp32.
      for (int64_t r = 0; r < 4; ++r) EXPECT_NEAR(c.losses[r], c.expected()[r], 2e-6) << v;
    }
  }
}

TEST(CrossEntropy, SumsALongVocabulary) {
  CrossEntropy c(3, 100003);
  c.forward();
  for (int64_t r = 0; r < 3; ++r) EXPECT_NEAR(c.losses[r], c.expected()[r], 5e-6);
}

TEST(CrossEntropy, IgnoredRowsCountNothing) {
  CrossEntropy c(4, 10);
  c.forward();
  EXPECT_EQ(c.losses[1], 0.0f);
  EXPECT_GT(c.losses[0], 0.0f);
}

TEST(CrossEntropy, LargeLogitsNeitherOverflowNorVanish) {
  CrossEntropy c(3, 50, 0, 1e4);
  c.forward();
  // Logits of 1e4 carry fp32 steps of 1e-3; what is computed from them is right to fp32.
  for (int64_t r = 0; r < 3; ++r) {
    EXPECT_NEAR(c.losses[r], c.expected()[r], 1e-6 * std::abs(c.expected()[r]));
  }
}

TEST(CrossEntropy, ANotFiniteLogitMakesTheLossNotFinite) {
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (int64_t place = 1; place < 40; ++place) {
      CrossEntropy c(1, 40);
      c.storage[place] = bad;
      c.forward();
      EXPECT_FALSE(std::isfinite(c.losses[0]));
    }
  }
}

TEST(CrossEntropy, RefusesALabelOutsideTheVocabulary) {
  for (int32_t bad : {-1, 10, -101}) {
    CrossEntropy c(3, 10);
    c.labels[2] = bad;
    EXPECT_THROW(c.forward(), Error);
  }
}

TEST(CrossEntropy, ForwardBackwardGivesTheLossesOfForward) {
  Context ctx;
  CrossEntropy c(5, 37);
  c.forward();
  const auto losses = c.losses;
  std::vector<float> dlogits(5 * 37);
  cross_entropy_forward_backward(ctx, view(c.losses, {5}), view(dlogits, {5, 37}), c.logits,
                                 view(c.labels, {5}), 1.0f);
  EXPECT_EQ(c.losses, losses);
}

TEST(CrossEntropy, TheGradientMayOverwriteTheLogits) {
  Context ctx;
  CrossEntropy c(5, 37);
  std::vector<float> dlogits(5 * 37);
  cross_entropy_forward_backward(ctx, view(c.losses, {5}), view(dlogits, {5, 37}), c.logits,
                                 view(c.labels, {5}), 0.5f);
  CrossEntropy again(5, 37);
  cross_entropy_forward_backward(ctx, view(again.losses, {5}), again.logits, again.logits,
                                 view(again.labels, {5}), 0.5f);
  EXPECT_EQ(again.storage, dlogits);
}

TEST(CrossEntropy, Bf16GradientIsTheRoundedGradient) {
  Context ctx;
  CrossEntropy c(5, 37);
  std::vector<float> wide(5 * 37);
  std::vector<bf16> narrow(5 * 37, bf16(9.0f));
  cross_entropy_forward_backward(ctx, view(c.losses, {5}), view(wide, {5, 37}), c.logits,
                                 view(c.labels, {5}), 0.5f);
  CrossEntropy again(5, 37);
  cross_entropy_forward_backward(ctx, view(c.losses, {5}), view(narrow, {5, 37}), again.logits,
                                 view(c.labels, {5}), 0.5f);
  for (size_t i = 0; i < wide.size(); ++i) EXPECT_EQ(narrow[i].bits, bf16(wide[i]).bits);
}

TEST(CrossEntropy, ResultsDoNotDependOnTheNumberOfThreads) {
  Context ctx;
  std::vector<float> dlogits[2], losses[2];
  for (int threads : {1, 2}) {
    CrossEntropy c(60, 500);
    dlogits[threads - 1].resize(60 * 500);
    set_thread_count(threads);
    cross_entropy_forward_backward(ctx, view(c.losses, {60}), view(dlogits[threads - 1], {60, 500}),
                                   c.logits, view(c.labels, {60}), 0.1f);
    losses[threads - 1] = c.losses;
  }
  set_thread_count(0);
  EXPECT_EQ(dlogits[0], dlogits[1]);
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(SumRows, AddsInDouble) {
  Context ctx;
  std::vector<float> x{1e8f, 1.0f, -1e8f, 0.5f};
  EXPECT_EQ(sum_rows(ctx, view(x, {4})), 1.5);
}

}  // namespace
}  // namespace zaya
