#include <gtest/gtest.h>

#include "ops/router/choose_expert.h"
#include "ops/router/choose_expert_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using namespace test;

constexpr double kTolerance = 2e-6;  // fp32 softmax over K classes, then three products

// The gradient through the gate, the choice held where the real parts put it.
TEST(ChooseExpertGradient, DlogitsOverwrites) {
  Context ctx;
  for (const int64_t K : {2, 5, 9, 17, 33}) {
    const int64_t T = 11;
    auto logits = cast<float>(random_values(T * K, K, 2.0));
    auto bias = cast<float>(random_values(K, 2, 0.2)), dgate = cast<float>(random_values(T, 3));
    std::vector<float> s(T * K), gate(T), dlogits(T * K, 100.0f);
    std::vector<int32_t> choice(T);
    choose_expert_forward(ctx, view(s, {T, K}), view(choice, {T}), view(gate, {T}),
                          view(logits, {T, K}), view(bias, {K}));
    choose_expert_backward(ctx, view(dlogits, {T, K}), view(dgate, {T}), view(s, {T, K}),
                           view(choice, {T}));

    const ComplexLoss loss = [&](const auto& in) {
      std::vector<Complex> probabilities(T * K), gates(T);
      std::vector<int32_t> choices(T);
      reference::choose_expert(probabilities.data(), choices.data(), gates.data(), in[0].data(),
                               widen(bias).data(), T, K);
      Complex sum = 0;
      for (int64_t t = 0; t < T; ++t) sum += gates[t] * static_cast<double>(dgate[t]);
      return sum;
    };
    const std::vector<double> wanted = complex_step_gradient(loss, {widen(logits)}, 0);
    EXPECT_LT(relative_error(widen(dlogits), wanted), kTolerance) << K;
  }
}

}  // namespace
}  // namespace zaya
