#include <gtest/gtest.h>

#include <cmath>

#include "ops/router/bias_gelu.h"
#include "ops/router/bias_gelu_reference.h"
#include "support/oracle.h"
#include "support/placed.h"

namespace zaya {
namespace {

using namespace test;

// erf is within 2e-7 and values are up to about 4.
constexpr double kTolerance = 1e-6;

std::vector<double> reference_gelu(const std::vector<double>& x, const std::vector<double>& bias) {
  std::vector<double> y(x.size());
  const auto N = static_cast<int64_t>(bias.size());
  reference::bias_gelu(y.data(), x.data(), bias.data(), static_cast<int64_t>(x.size()) / N, N);
  return y;
}

TEST(BiasGelu, ForwardMatchesTheReferenceAtEveryLengthAndMisalignment) {
  Context ctx;
  for (int64_t N = 1; N <= kMaxLength; ++N) {
    for (const int64_t offset : {0, 1, 3}) {
      const int64_t T = 3;
      const auto x = cast<float>(random_values(T * N, N)), bias = cast<float>(random_values(N, 99));
      Placed<float> x_in(x, {T, N}, offset), b_in(bias, {N}, offset + 1);
      Placed<float> y(std::vector<float>(T * N), {T, N}, offset + 2);
      bias_gelu_forward(ctx, y.tensor(), x_in.tensor(), b_in.tensor());
      const std::vector<double> wanted = reference_gelu(widen(x), widen(bias));
      ASSERT_LT(relative_error(widen(y.values()), wanted), kTolerance) << N << " " << offset;
    }
  }
}

TEST(BiasGelu, ForwardIsAccurateFarIntoBothTails) {
  Context ctx;
  std::vector<float> x, bias{0};
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<float>(i) * 0.01f);
  const auto T = static_cast<int64_t>(x.size());
  std::vector<float> y(T);
  bias_gelu_forward(ctx, view(y, {T, 1}), view(x, {T, 1}), view(bias, {1}));
  const std::vector<double> wanted = reference_gelu(widen(x), {0});
  for (int64_t t = 0; t < T; ++t) {
    // The error of erf (2e-7) times x / 2, and one rounding of the result.
    ASSERT_NEAR(y[t], wanted[t], 1.5e-7 * std::abs(x[t]) + 6e-8 * std::abs(wanted[t])) << x[t];
  }
}

TEST(BiasGelu, BackwardOfHugeValuesIsFinite) {
  Context ctx;
  std::vector<float> x{1e30f, -1e30f, 50, -50}, bias{0}, dy(4, 1.0f), dx(4), dbias(1);
  bias_gelu_backward(ctx, view(dx, {4, 1}), view(dbias, {1}), view(dy, {4, 1}), view(x, {4, 1}),
                     view(bias, {1}));
  EXPECT_EQ(dx, (std::vector<float>{1, 0, 1, 0}));
}

TEST(BiasGelu, NanStaysNan) {
  Context ctx;
  std::vector<float> x{std::nanf("")}, bias{0}, y(1);
  bias_gelu_forward(ctx, view(y, {1, 1}), view(x, {1, 1}), view(bias, {1}));
  EXPECT_TRUE(std::isnan(y[0]));
}

TEST(BiasGelu, BackwardMayOverwriteItsOwnInput) {
  Context ctx;
  const int64_t T = 5, N = 19;
  auto x = cast<float>(random_values(T * N, 1)), bias = cast<float>(random_values(N, 2));
  auto dy = cast<float>(random_values(T * N, 3));
  std::vector<float> dx(T * N), dbias(N), dbias_in_place(N);
  bias_gelu_backward(ctx, view(dx, {T, N}), view(dbias, {N}), view(dy, {T, N}), view(x, {T, N}),
                     view(bias, {N}));
  bias_gelu_backward(ctx, view(dy, {T, N}), view(dbias_in_place, {N}), view(dy, {T, N}),
                     view(x, {T, N}), view(bias, {N}));
  EXPECT_EQ(dy, dx);
  EXPECT_EQ(dbias_in_place, dbias);
}

TEST(BiasGelu, NoRowsIsNoWork) {
  Context ctx;
  std::vector<float> none, bias(7), dbias(7, 5.0f);
  bias_gelu_forward(ctx, view(none, {0, 7}), view(none, {0, 7}), view(bias, {7}));
  bias_gelu_backward(ctx, view(none, {0, 7}), view(dbias, {7}), view(none, {0, 7}),
                     view(none, {0, 7}), view(bias, {7}));
  EXPECT_EQ(dbias, std::vector<float>(7, 5.0f));
}

TEST(BiasGelu, IsTheSameOnAnyNumberOfThreads) {
  Context ctx;
  const int64_t T = 301, N = 77;
  auto x = cast<float>(random_values(T * N, 1)), bias = cast<float>(random_values(N, 2));
  auto dy = cast<float>(random_values(T * N, 3));
  expect_same_bits_on_1_and_2_threads([&] {
    std::vector<float> y(T * N), dx(T * N), dbias(N);
    bias_gelu_forward(ctx, view(y, {T, N}), view(x, {T, N}), view(bias, {N}));
    bias_gelu_backward(ctx, view(dx, {T, N}), view(dbias, {N}), view(dy, {T, N}), view(x, {T, N}),
                       view(bias, {N}));
    y.insert(y.end(), dx.begin(), dx.end());
    y.insert(y.end(), dbias.begin(), dbias.end());
    return y;
  });
}

TEST(BiasGelu, WrongShapesAreABrokenContract) {
  Context ctx;
  std::vector<float> x(6), y(6), bias(2);
  EXPECT_THROW(bias_gelu_forward(ctx, view(y, {2, 3}), view(x, {2, 3}), view(bias, {2})),
               ContractError);
}

}  // namespace
}  // namespace zaya
