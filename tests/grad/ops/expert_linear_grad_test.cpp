#include <gtest/gtest.h>

#include "ops/experts/expert_linear.h"
#include "ops/experts/expert_linear_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using namespace test;

// Four experts over eleven tokens: one with none, one with a single token, two skipped tokens.
constexpr int64_t kExperts = 4, kTokens = 11, kOutputs = 6, kInputs = 5;
std::vector<int32_t> offsets() { return {0, 5, 5, 6, 9, 11}; }

struct Case {
  std::vector<double> x = random_values(kTokens * kInputs, 1);
  std::vector<double> weight = random_values(kExperts * kOutputs * kInputs, 2);
  std::vector<double> dy = random_values(kTokens * kOutputs, 3);

  // sum of dy * y over the rows that belong to experts.
  std::vector<double> gradient(size_t which) const {
    const auto loss = [this](const std::vector<std::vector<Complex>>& in) {
      std::vector<Complex> y(kTokens * kOutputs);
      reference::expert_linear(y.data(), in[0].data(), in[1].data(), offsets().data(), kExperts,
                               kOutputs, kInputs);
      Complex sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
      return sum;
    };
    return complex_step_gradient(loss, {x, weight}, which);
  }
};

TEST(ExpertLinear, ForwardIsTheReferencesAndLeavesSkippedRowsAlone) {
  Context ctx;
  const Case c;
  auto x = cast<float>(c.x), weight = cast<float>(c.weight);
  std::vector<float> y(kTokens * kOutputs, 7.0f);
  auto bounds = offsets();
  expert_linear_forward(ctx, view(y, {kTokens, kOutputs}), view(x, {kTokens, kInputs}),
                        stacked_matrices(view(weight, {kExperts, kOutputs, kInputs})),
                        view(bounds, {kExperts + 2}));
  std::vector<double> wanted(kTokens * kOutputs, 7.0);
  reference::expert_linear(wanted.data(), widen(x).data(), widen(weight).data(), bounds.data(),
                           kExperts, kOutputs, kInputs);
  EXPECT_LT(relative_error(widen(y), wanted), 1e-6);  // five fp32 products a sum
  for (int64_t i = 9 * kOutputs; i < kTokens * kOutputs; ++i) EXPECT_EQ(y[i], 7.0f);
}

TEST(ExpertLinear, InputGradientOverwrites) {
  Context ctx;
  const Case c;
  auto weight = cast<float>(c.weight), dy = cast<float>(c.dy);
  std::vector<float> dx(kTokens * kInputs, 7.0f);
  auto bounds = offsets();
  expert_linear_backward_input(ctx, view(dx, {kTokens, kInputs}), view(dy, {kTokens, kOutputs}),
                               stacked_matrices(view(weight, {kExperts, kOutputs, kInputs})),
                               view(bounds, {kExperts + 2}));
  std::vector<double> wanted = c.gradient(0);
  std::fill(wanted.begin() + 9 * kInputs, wanted.end(), 7.0);  // skipped rows are left alone
  EXPECT_LT(relative_error(widen(dx), wanted), 1e-6);
}

TEST(ExpertLinear, WeightGradientAddsAndAnExpertWithoutTokensGetsNothing) {
  Context ctx;
  const Case c;
  auto x = cast<float>(c.x), dy = cast<float>(c.dy);
  std::vector<float> dweight(kExperts * kOutputs * kInputs, 0.5f);
  auto bounds = offsets();
  expert_linear_backward_weight(ctx, view(dweight, {kExperts, kOutputs, kInputs}),
                                view(dy, {kTokens, kOutputs}), view(x, {kTokens, kInputs}),
                                view(bounds, {kExperts + 2}));
  std::vector<double> wanted = c.gradient(1);
  for (double& v : wanted) v += 0.5;
  EXPECT_LT(relative_error(widen(dweight), wanted), 1e-6);
  for (int64_t i = kOutputs * kInputs; i < 2 * kOutputs * kInputs; ++i) EXPECT_EQ(dweight[i], 0.5f);
}

}  // namespace
}  // namespace zaya
