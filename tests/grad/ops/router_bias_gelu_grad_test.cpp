#include <gtest/gtest.h>

#include "ops/router/bias_gelu.h"
#include "ops/router/bias_gelu_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using namespace test;

// fp32 against the exact derivative: erf within 2e-7, exp within 1e-7, and sums of T terms.
constexpr double kTolerance = 1e-6;
constexpr int64_t T = 7, N = 37;

TEST(BiasGeluGradient, DxOverwritesAndDbiasAdds) {
  auto x = cast<float>(random_values(T * N, 1, 2.0)), bias = cast<float>(random_values(N, 2));
  auto dy = cast<float>(random_values(T * N, 3));
  std::vector<float> dx(T * N, 100.0f), dbias(N, 0.5f);
  Context ctx;
  bias_gelu_backward(ctx, view(dx, {T, N}), view(dbias, {N}), view(dy, {T, N}), view(x, {T, N}),
                     view(bias, {N}));

  const ComplexLoss loss = [&](const auto& in) {
    std::vector<Complex> y(T * N);
    reference::bias_gelu(y.data(), in[0].data(), in[1].data(), T, N);
    Complex sum = 0;
    for (int64_t i = 0; i < T * N; ++i) sum += y[i] * static_cast<double>(dy[i]);
    return sum;
  };
  const std::vector<std::vector<double>> inputs{widen(x), widen(bias)};
  EXPECT_LT(relative_error(widen(dx), complex_step_gradient(loss, inputs, 0)), kTolerance);
  std::vector<double> dbias_wanted = complex_step_gradient(loss, inputs, 1);
  for (double& v : dbias_wanted) v += 0.5;
  EXPECT_LT(relative_error(widen(dbias), dbias_wanted), kTolerance);
}

}  // namespace
}  // namespace zaya
