#include <gtest/gtest.h>

#include "ops/router/depth_average.h"
#include "ops/router/depth_average_reference.h"
#include "support/oracle.h"
#include "support/placed.h"

namespace zaya {
namespace {

using namespace test;

TEST(DepthAverage, ForwardMatchesTheReferenceAtEveryLengthAndMisalignment) {
  Context ctx;
  for (int64_t R = 1; R <= kMaxLength; ++R) {
    for (const int64_t offset : {0, 1, 3}) {
      const int64_t T = 3;
      const auto down = cast<float>(random_values(T * R, R)),
                 bias = cast<float>(random_values(R, 2));
      const auto previous = cast<float>(random_values(T * R, 3));
      const auto gamma = cast<float>(random_values(R, 4));
      Placed<float> r(down, {T, R}, offset), b(bias, {R}, offset + 1);
      Placed<float> p(previous, {T, R}, offset + 2), g(gamma, {R}, offset + 3);
      depth_average_forward(ctx, r.tensor(), b.tensor(), p.tensor(), g.tensor());

      std::vector<double> wanted(T * R);
      reference::depth_average(wanted.data(), widen(down).data(), widen(bias).data(),
                               widen(previous).data(), widen(gamma).data(), T, R);
      // Three roundings, with some cancellation.
      ASSERT_LT(relative_error(widen(r.values()), wanted), 5e-7) << R << " " << offset;
    }
  }
}

TEST(DepthAverage, BlockZeroAddsOnlyTheBias) {
  Context ctx;
  std::vector<float> r{1, 2, 3, 4}, bias{10, 20};
  depth_average_forward(ctx, view(r, {2, 2}), view(bias, {2}), Tensor(), Tensor());
  EXPECT_EQ(r, (std::vector<float>{11, 22, 13, 24}));
}

TEST(DepthAverage, APreviousStateWithoutGammaIsABrokenContract) {
  Context ctx;
  std::vector<float> r(4), bias(2), previous(4);
  EXPECT_THROW(depth_average_forward(ctx, view(r, {2, 2}), view(bias, {2}), view(previous, {2, 2}),
                                     Tensor()),
               ContractError);
}

TEST(DepthAverage, IsTheSameOnAnyNumberOfThreads) {
  Context ctx;
  const int64_t T = 301, R = 77;
  auto down = cast<float>(random_values(T * R, 1)), bias = cast<float>(random_values(R, 2));
  auto previous = cast<float>(random_values(T * R, 3)), gamma = cast<float>(random_values(R, 4));
  expect_same_bits_on_1_and_2_threads([&] {
    std::vector<float> r = down, dprevious(T * R), dbias(R), dgamma(R);
    depth_average_forward(ctx, view(r, {T, R}), view(bias, {R}), view(previous, {T, R}),
                          view(gamma, {R}));
    depth_average_backward(ctx, view(dprevious, {T, R}), view(dbias, {R}), view(dgamma, {R}),
                           view(r, {T, R}), view(previous, {T, R}), view(gamma, {R}));
    r.insert(r.end(), dprevious.begin(), dprevious.end());
    r.insert(r.end(), dbias.begin(), dbias.end());
    r.insert(r.end(), dgamma.begin(), dgamma.end());
    return r;
  });
}

}  // namespace
}  // namespace zaya
