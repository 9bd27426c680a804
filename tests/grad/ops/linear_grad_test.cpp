// Legend: T tokens, K inputs, N outputs. The loss is sum(dy * y).
#include <gtest/gtest.h>

#include "ops/linear/linear.h"
#include "ops/linear/linear_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::Complex;
using test::random_values;
using test::view;
using test::widen;

constexpr int64_t kT = 5, kN = 6, kK = 7;
// Sums of at most seven fp32 products.
constexpr double kTolerance = 1e-6;

struct LinearGrad : testing::Test {
  Context ctx;
  std::vector<float> x = cast<float>(random_values(kT * kK, 1));
  std::vector<float> weight = cast<float>(random_values(kN * kK, 2));
  std::vector<float> bias = cast<float>(random_values(kN, 3));
  std::vector<float> dy = cast<float>(random_values(kT * kN, 4));

  // The gradient with respect to x (0), weight (1) or bias (2).
  std::vector<double> expected(size_t which) const {
    const auto loss = [&](const std::vector<std::vector<Complex>>& in) {
      std::vector<Complex> y(kT * kN);
      reference::linear_forward(y.data(), in[0].data(), in[1].data(), kT, kN, kK);
      reference::add_bias(y.data(), in[2].data(), kT, kN);
      Complex sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(dy[i]) * y[i];
      return sum;
    };
    return test::complex_step_gradient(loss, {widen(x), widen(weight), widen(bias)}, which);
  }
};

std::vector<double> minus(const std::vector<float>& a, double b) {
  std::vector<double> out = widen(a);
  for (double& v : out) v -= b;
  return out;
}

TEST_F(LinearGrad, InputGradientOverwrites) {
  std::vector<float> dx(kT * kK, 5.0f);
  linear_backward_input(ctx, view(dx, {kT, kK}), view(dy, {kT, kN}), view(weight, {kN, kK}),
                        Into::overwrite);
  EXPECT_LT(test::relative_error(widen(dx), expected(0)), kTolerance);
}

TEST_F(LinearGrad, InputGradientAddsWhenAsked) {
  std::vector<float> dx(kT * kK, 5.0f);
  linear_backward_input(ctx, view(dx, {kT, kK}), view(dy, {kT, kN}), view(weight, {kN, kK}),
                        Into::add);
  EXPECT_LT(test::relative_error(minus(dx, 5), expected(0)), kTolerance);
}

TEST_F(LinearGrad, WeightGradientAdds) {
  std::vector<float> dweight(kN * kK, 2.0f);
  linear_backward_weight(ctx, view(dweight, {kN, kK}), view(dy, {kT, kN}), view(x, {kT, kK}));
  EXPECT_LT(test::relative_error(minus(dweight, 2), expected(1)), kTolerance);
}

TEST_F(LinearGrad, BiasGradientAdds) {
  std::vector<float> dbias(kN, 2.0f);
  bias_backward(ctx, view(dbias, {kN}), view(dy, {kT, kN}));
  EXPECT_LT(test::relative_error(minus(dbias, 2), expected(2)), kTolerance);
}

}  // namespace
}  // namespace zaya
