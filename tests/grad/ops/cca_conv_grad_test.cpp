#include <gtest/gtest.h>

#include "ops/cca/depthwise_conv.h"
#include "ops/cca/depthwise_conv_reference.h"
#include "ops/cca/grouped_conv.h"
#include "ops/cca/grouped_conv_reference.h"
#include "ops/cca/value_shift.h"
#include "ops/cca/value_shift_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::Complex;
using test::complex_step_gradient;
using test::random_values;
using test::relative_error;
using test::view;
using test::widen;

using Arrays = std::vector<std::vector<Complex>>;

Complex dot(const std::vector<Complex>& a, const std::vector<double>& b) {
  Complex sum = 0;
  for (size_t i = 0; i < b.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// a + 1: what an adding gradient holds after it started from ones.
std::vector<double> plus_one(std::vector<double> a) {
  for (double& x : a) x += 1;
  return a;
}

// Short sums of f32 products.
constexpr double kTolerance = 2e-6;

const std::vector<int32_t> kCuSeqlens{0, 1, 4, 4, 13};
const Ragged kSequences{kCuSeqlens};
constexpr int64_t kTokens = 13;

template <class T>
void expect_depthwise_gradients(int64_t channels, int64_t taps, int64_t lead) {
  const int64_t rows = kTokens + kSequences.count() * lead;
  auto in = cast<T>(random_values(kTokens * channels, 1));
  auto weight = cast<float>(random_values(channels * taps, 2));
  auto bias = cast<float>(random_values(channels, 3));
  auto dout = cast<float>(random_values(rows * channels, 4));
  // din overwrites; dweight and dbias add.
  std::vector<T> din(in.size(), T(7.0f));
  auto other = cast<float>(random_values(kTokens * channels, 5));
  std::vector<float> dweight(weight.size(), 1.0f), dbias(channels, 1.0f);
  Context ctx;
  depthwise_conv_backward(ctx, view(din, {kTokens, channels}), view(dweight, {channels, 1, taps}),
                          view(dbias, {channels}), view(other, {kTokens, channels}),
                          view(dout, {rows, channels}), view(in, {kTokens, channels}),
                          view(weight, {channels, 1, taps}), kSequences, lead);
  const auto g = widen(dout);
  const auto loss = [&](const Arrays& x) {
    std::vector<Complex> out(rows * channels);
    reference::depthwise_conv<Complex>(out.data(), x[0].data(), nullptr, x[1].data(), x[2].data(),
                                       kSequences, channels, taps, lead);
    return dot(out, g);
  };
  const std::vector<std::vector<double>> at{widen(in), widen(weight), widen(bias)};
  auto expected_din = complex_step_gradient(loss, at, 0);
  for (size_t i = 0; i < other.size(); ++i) expected_din[i] += other[i];
  // din is rounded once when it is bf16.
  EXPECT_LT(relative_error(widen(din), expected_din), sizeof(T) == 2 ? 1.0 / 256 : kTolerance);
  EXPECT_LT(relative_error(widen(dweight), plus_one(complex_step_gradient(loss, at, 1))),
            kTolerance);
  EXPECT_LT(relative_error(widen(dbias), plus_one(complex_step_gradient(loss, at, 2))), kTolerance);
}

TEST(DepthwiseConvGradient, MatchesForEveryTapCountAndLead) {
  for (int64_t taps = 1; taps <= 5; ++taps)
    for (int64_t lead = 0; lead <= 2; ++lead) expect_depthwise_gradients<float>(5, taps, lead);
}

TEST(DepthwiseConvGradient, MatchesForEveryChannelCount) {
  for (int64_t channels = 1; channels <= 17; ++channels)
    expect_depthwise_gradients<bf16>(channels, 2, 1);
  expect_depthwise_gradients<float>(70, 2, 1);  // more than one strip of channels
}

template <class T>
void expect_grouped_gradients(int64_t groups, int64_t d, int64_t taps) {
  const int64_t C = groups * d, rows = kTokens + kSequences.count() * (taps - 1);
  auto in = cast<T>(random_values(rows * C, 1));
  auto weight = cast<float>(random_values(C * d * taps, 2));
  auto bias = cast<float>(random_values(C, 3));
  // In the format of `in`, as the products read it.
  auto dout = cast<float>(widen(cast<T>(random_values(kTokens * C, 4))));
  std::vector<float> din(in.size(), 7.0f), dweight(weight.size(), 1.0f), dbias(C, 1.0f);
  Context ctx;
  grouped_conv_backward(ctx, view(din, {rows, C}), view(dweight, {C, d, taps}), view(dbias, {C}),
                        view(dout, {kTokens, C}), view(in, {rows, C}), view(weight, {C, d, taps}),
                        kSequences);
  const auto g = widen(dout);
  const auto loss = [&](const Arrays& x) {
    std::vector<Complex> out(kTokens * C);
    reference::grouped_conv<Complex>(out.data(), x[0].data(), x[1].data(), x[2].data(), kSequences,
                                     C, d, taps);
    return dot(out, g);
  };
  // The products use the weights in the format of `in`.
  const std::vector<std::vector<double>> at{widen(in), widen(cast<T>(widen(weight))), widen(bias)};
  EXPECT_LT(relative_error(widen(din), complex_step_gradient(loss, at, 0)), kTolerance);
  EXPECT_LT(relative_error(widen(dweight), plus_one(complex_step_gradient(loss, at, 1))),
            kTolerance);
  EXPECT_LT(relative_error(widen(dbias), plus_one(complex_step_gradient(loss, at, 2))), kTolerance);
}

TEST(GroupedConvGradient, MatchesForEveryTapCount) {
  for (int64_t taps = 1; taps <= 4; ++taps) expect_grouped_gradients<float>(3, 4, taps);
}

TEST(GroupedConvGradient, MatchesForEveryGroupSize) {
  for (int64_t d : {1, 2, 3, 5, 8}) expect_grouped_gradients<float>(2, d, 2);
  expect_grouped_gradients<bf16>(2, 5, 2);
}

TEST(ValueShiftGradient, Matches) {
  auto dout = cast<float>(random_values(kTokens * 3, 4));
  std::vector<float> din(dout.size(), 7.0f);
  Context ctx;
  value_shift_backward(ctx, view(din, {kTokens, 3}), view(dout, {kTokens, 3}), kSequences);
  const auto g = widen(dout);
  const auto loss = [&](const Arrays& x) {
    std::vector<Complex> out(kTokens * 3);
    reference::value_shift<Complex>(out.data(), x[0].data(), nullptr, kSequences, 3);
    return dot(out, g);
  };
  // Copies are exact; the oracle divides by its step, which is no power of two.
  const auto want = complex_step_gradient(loss, {random_values(kTokens * 3, 1)}, 0);
  EXPECT_LT(relative_error(widen(din), want), 1e-15);
}

}  // namespace
}  // namespace zaya
