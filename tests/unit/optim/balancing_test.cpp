#include "optim/balancing.h"

#include <gtest/gtest.h>

#include <vector>

namespace zaya {
namespace {

TEST(Balancing, GradientIsShareMinusEvenShareAndTheSkipSlotRests) {
  std::vector<float> gradient(5, 9.0f);
  const std::vector<int64_t> counts{4, 2, 2, 0, 0};
  balancing_gradient(Tensor(gradient.data(), DType::f32, {5}), counts);
  EXPECT_EQ(gradient, (std::vector<float>{0.25f, 0.0f, 0.0f, -0.25f, 0.0f}));
}

TEST(Balancing, SkippedTokensCountInTheShare) {
  std::vector<float> gradient(3, 9.0f);
  const std::vector<int64_t> counts{1, 1, 2};
  balancing_gradient(Tensor(gradient.data(), DType::f32, {3}), counts);
  EXPECT_EQ(gradient, (std::vector<float>{-0.25f, -0.25f, 0.0f}));
}

TEST(Balancing, EntropyIsOneWhenEvenAndZeroWhenOneExpertTakesAll) {
  EXPECT_DOUBLE_EQ(load_entropy(std::vector<int64_t>{5, 5, 5, 5, 3}), 1.0);
  EXPECT_DOUBLE_EQ(load_entropy(std::vector<int64_t>{0, 20, 0, 0, 0}), 0.0);
}

}  // namespace
}  // namespace zaya
