// Legend: R rows, V vocabulary.
#include <gtest/gtest.h>

#include "ops/loss/cross_entropy.h"
#include "ops/loss/cross_entropy_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::Complex;
using test::random_values;
using test::view;
using test::widen;

TEST(CrossEntropyGrad, OverwritesWithTheScaledGradientOfTheSum) {
  constexpr int64_t kR = 4;
  constexpr float kScale = 0.25f;
  Context ctx;
  for (int64_t v : {1, 2, 5, 8, 13, 16, 17, 31, 40}) {
    auto logits = cast<float>(random_values(kR * v, 1, 2.0));
    std::vector<int32_t> labels{0, kIgnoredLabel, static_cast<int32_t>(v - 1),
                                static_cast<int32_t>(v / 2)};
    const std::vector<double> at = widen(logits);
    std::vector<float> losses(kR), dlogits(kR * v, 9.0f);
    cross_entropy_forward_backward(ctx, view(losses, {kR}), view(dlogits, {kR, v}),
                                   view(logits, {kR, v}), view(labels, {kR}), kScale);
    const auto loss = [&](const std::vector<std::vector<Complex>>& in) {
      std::vector<Complex> rows(kR);
      reference::cross_entropy_forward(rows.data(), in[0].data(), labels.data(), kR, v);
      Complex sum = 0;
      for (const Complex& row : rows) sum += static_cast<double>(kScale) * row;
      return sum;
    };
    const auto expected = test::complex_step_gradient(loss, {at}, 0);
    EXPECT_LT(test::relative_error(widen(dlogits), expected), 1e-6);  // a few fp32 roundings
  }
}

}  // namespace
}  // namespace zaya
