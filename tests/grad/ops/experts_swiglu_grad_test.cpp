#include <gtest/gtest.h>

#include "ops/experts/swiglu.h"
#include "ops/experts/swiglu_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using namespace test;

template <class T>
double backward_error() {
  const int64_t M = 5, I = 37;
  auto gate_up = cast<T>(random_values(M * 2 * I, 1, 2.0)), dy = cast<T>(random_values(M * I, 2));
  auto d = cast<T>(std::vector<double>(M * 2 * I, 100.0));
  Context ctx;
  swiglu_backward(ctx, view(d, {M, 2 * I}), view(dy, {M, I}), view(gate_up, {M, 2 * I}));

  const std::vector<double> weights = widen(dy);
  const ComplexLoss loss = [&](const auto& in) {
    std::vector<Complex> y(M * I);
    reference::swiglu(y.data(), in[0].data(), M, I);
    Complex sum = 0;
    for (int64_t i = 0; i < M * I; ++i) sum += y[i] * weights[i];
    return sum;
  };
  return relative_error(widen(d), complex_step_gradient(loss, {widen(gate_up)}, 0));
}

TEST(SwigluGradient, OverwritesInF32) {
  EXPECT_LT(backward_error<float>(), 1e-6);
}  // few roundings

// Arithmetic is fp32: only the result is rounded, by at most 2^-8.
TEST(SwigluGradient, OverwritesInBf16) { EXPECT_LT(backward_error<bf16>(), 0x1p-8); }

}  // namespace
}  // namespace zaya
