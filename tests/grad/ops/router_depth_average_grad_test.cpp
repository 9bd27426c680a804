#include <gtest/gtest.h>

#include "ops/router/depth_average.h"
#include "ops/router/depth_average_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using namespace test;

constexpr double kTolerance = 5e-7;  // fp32 sums of T products
constexpr int64_t T = 9, R = 41;

// d sum(r * dr) / d {down, bias, previous, gamma}; a block 0 has the first two.
std::vector<double> wanted_gradient(const std::vector<std::vector<double>>& inputs,
                                    const std::vector<float>& dr, size_t which) {
  const ComplexLoss loss = [&](const auto& in) {
    std::vector<Complex> r(T * R);
    const bool first = in.size() == 2;
    reference::depth_average(r.data(), in[0].data(), in[1].data(), first ? nullptr : in[2].data(),
                             first ? nullptr : in[3].data(), T, R);
    Complex sum = 0;
    for (int64_t i = 0; i < T * R; ++i) sum += r[i] * static_cast<double>(dr[i]);
    return sum;
  };
  return complex_step_gradient(loss, inputs, which);
}

TEST(DepthAverageGradient, DpreviousOverwritesAndTheVectorsAdd) {
  auto bias = cast<float>(random_values(R, 2)), gamma = cast<float>(random_values(R, 4));
  auto previous = cast<float>(random_values(T * R, 3)), dr = cast<float>(random_values(T * R, 5));
  const std::vector<float> dr_before = dr;
  std::vector<float> dprevious(T * R, 100.0f), dbias(R, 0.5f), dgamma(R, -2.0f);
  Context ctx;
  depth_average_backward(ctx, view(dprevious, {T, R}), view(dbias, {R}), view(dgamma, {R}),
                         view(dr, {T, R}), view(previous, {T, R}), view(gamma, {R}));

  const std::vector<std::vector<double>> inputs{random_values(T * R, 1), widen(bias),
                                                widen(previous), widen(gamma)};
  std::vector<double> dbias_wanted = wanted_gradient(inputs, dr, 1);
  for (double& v : dbias_wanted) v += 0.5;
  EXPECT_LT(relative_error(widen(dbias), dbias_wanted), kTolerance);
  EXPECT_LT(relative_error(widen(dprevious), wanted_gradient(inputs, dr, 2)), kTolerance);
  std::vector<double> dgamma_wanted = wanted_gradient(inputs, dr, 3);
  for (double& v : dgamma_wanted) v -= 2.0;
  EXPECT_LT(relative_error(widen(dgamma), dgamma_wanted), kTolerance);
  // The gradient of Wdown h is dr itself: it must come out as it went in.
  EXPECT_EQ(dr, dr_before);
}

TEST(DepthAverageGradient, DpreviousMayBeDrItself) {
  auto dr = cast<float>(random_values(T * R, 5)), gamma = cast<float>(random_values(R, 4));
  auto previous = cast<float>(random_values(T * R, 3));
  std::vector<float> bias(R), dprevious(T * R), dbias(R), dgamma(R), dbias2(R), dgamma2(R);
  Context ctx;
  depth_average_backward(ctx, view(dprevious, {T, R}), view(dbias, {R}), view(dgamma, {R}),
                         view(dr, {T, R}), view(previous, {T, R}), view(gamma, {R}));
  depth_average_backward(ctx, view(dr, {T, R}), view(dbias2, {R}), view(dgamma2, {R}),
                         view(dr, {T, R}), view(previous, {T, R}), view(gamma, {R}));
  EXPECT_EQ(dr, dprevious);
  EXPECT_EQ(dbias2, dbias);
  EXPECT_EQ(dgamma2, dgamma);
}

TEST(DepthAverageGradient, BlockZeroHasOnlyABias) {
  auto dr = cast<float>(random_values(T * R, 5));
  std::vector<float> bias(R), dbias(R);
  Context ctx;
  depth_average_backward(ctx, Tensor(), view(dbias, {R}), Tensor(), view(dr, {T, R}), Tensor(),
                         Tensor());
  const std::vector<std::vector<double>> inputs{random_values(T * R, 1), widen(bias)};
  EXPECT_LT(relative_error(widen(dbias), wanted_gradient(inputs, dr, 1)), kTolerance);
}

}  // namespace
}  // namespace zaya
