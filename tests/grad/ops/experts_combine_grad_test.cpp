#include <gtest/gtest.h>

#include "ops/experts/combine.h"
#include "ops/experts/combine_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using namespace test;

// Seven tokens, two experts; tokens 1 and 4 skip, at sorted positions 5 and 6.
constexpr int64_t T = 7, E = 2, D = 37;
std::vector<int32_t> order{2, 3, 6, 0, 5, 1, 4};
std::vector<int32_t> offsets{0, 3, 5, 7};

// Compares dexpert_out, dh and dgate of format S with the complex step. Rows of dexpert_out beyond
// offsets[E] are not written; the others and dgate are overwritten, and so is dh under Skip::pass.
template <class S>
void expect_gradients_match(Skip skip, double tolerance) {
  auto expert_out = cast<S>(random_values(T * D, 1)), h = cast<S>(random_values(T * D, 2));
  auto gate = cast<float>(random_values(T, 3));
  auto dy = cast<S>(random_values(T * D, 4));
  auto dexpert_out = cast<S>(std::vector<double>(T * D, 100.0));
  std::vector<float> dh(T * D, 100.0f), dgate(T, 100.0f);
  Context ctx;
  combine_backward(ctx, view(dexpert_out, {T, D}), view(dh, {T, D}), view(dgate, {T}),
                   view(dy, {T, D}), view(expert_out, {T, D}), view(h, {T, D}), view(gate, {T}),
                   view(order, {T}), view(offsets, {E + 2}), skip);

  const std::vector<double> weights = widen(dy);
  const ComplexLoss loss = [&](const auto& in) {
    std::vector<Complex> y(T * D);
    reference::combine(y.data(), in[0].data(), in[1].data(), in[2].data(), order.data(), offsets[E],
                       skip, T, D);
    Complex sum = 0;
    for (int64_t i = 0; i < T * D; ++i) sum += y[i] * weights[i];
    return sum;
  };
  const std::vector<std::vector<double>> inputs{widen(expert_out), widen(h), widen(gate)};
  std::vector<double> dexpert_wanted = complex_step_gradient(loss, inputs, 0);
  for (int64_t i = offsets[E] * D; i < T * D; ++i) dexpert_wanted[i] = 100;
  EXPECT_LT(relative_error(widen(dexpert_out), dexpert_wanted), tolerance);
  if (skip == Skip::zero)
    EXPECT_EQ(dh, std::vector<float>(T * D, 100.0f));
  else
    EXPECT_LT(relative_error(widen(dh), complex_step_gradient(loss, inputs, 1)), tolerance);
  EXPECT_LT(relative_error(widen(dgate), complex_step_gradient(loss, inputs, 2)), tolerance);
}

// fp32 sums of D products.
TEST(CombineGradient, OfTheCurrentLayoutInF32) { expect_gradients_match<float>(Skip::zero, 5e-7); }
TEST(CombineGradient, OfTheOriginalLayoutInF32) { expect_gradients_match<float>(Skip::pass, 5e-7); }
// Results in bf16 are rounded once.
TEST(CombineGradient, OfTheCurrentLayoutInBf16) {
  expect_gradients_match<bf16>(Skip::zero, 0x1p-8);
}
TEST(CombineGradient, OfTheOriginalLayoutInBf16) {
  expect_gradients_match<bf16>(Skip::pass, 0x1p-8);
}

}  // namespace
}  // namespace zaya
