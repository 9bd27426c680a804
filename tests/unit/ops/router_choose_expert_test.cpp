#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/router/choose_expert.h"
#include "ops/router/choose_expert_reference.h"
#include "support/oracle.h"
#include "support/placed.h"

namespace zaya {
namespace {

using namespace test;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

struct Chosen {
  std::vector<float> probabilities, gate;
  std::vector<int32_t> choice;
};

Chosen choose(std::vector<float> logits, std::vector<float> bias) {
  Context ctx;
  const auto K = static_cast<int64_t>(bias.size());
  const auto T = static_cast<int64_t>(logits.size()) / K;
  Chosen out{std::vector<float>(T * K), std::vector<float>(T), std::vector<int32_t>(T, -7)};
  choose_expert_forward(ctx, view(out.probabilities, {T, K}), view(out.choice, {T}),
                        view(out.gate, {T}), view(logits, {T, K}), view(bias, {K}));
  return out;
}

TEST(ChooseExpert, MatchesTheReferenceAtEveryNumberOfClassesAndMisalignment) {
  Context ctx;
  for (int64_t K = 1; K <= kMaxLength; ++K) {
    for (const int64_t offset : {0, 1, 3}) {
      const int64_t T = 5;
      const auto logits = cast<float>(random_values(T * K, K, 3.0));
      const auto bias = cast<float>(random_values(K, 2, 0.1));
      Placed<float> z(logits, {T, K}, offset), b(bias, {K}, offset + 1);
      Placed<float> s(std::vector<float>(T * K), {T, K}, offset + 2);
      Placed<float> gate(std::vector<float>(T), {T}, offset);
      Placed<int32_t> choice(std::vector<int32_t>(T), {T}, offset);
      choose_expert_forward(ctx, s.tensor(), choice.tensor(), gate.tensor(), z.tensor(),
                            b.tensor());

      std::vector<double> s_wanted(T * K), gate_wanted(T);
      std::vector<int32_t> choice_wanted(T);
      reference::choose_expert(s_wanted.data(), choice_wanted.data(), gate_wanted.data(),
                               widen(logits).data(), widen(bias).data(), T, K);
      EXPECT_EQ(choice.values(), choice_wanted);
      // exp of differences of up to about 20, each rounded at 6e-8 relative.
      ASSERT_LT(relative_error(widen(s.values()), s_wanted), 2e-6) << K;
      ASSERT_LT(relative_error(widen(gate.values()), gate_wanted), 2e-6) << K;
    }
  }
}

TEST(ChooseExpert, ATieGoesToTheLowestIndex) {
  const Chosen out = choose({0, 1, 1, 1, /**/ 2, 2, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(out.choice, (std::vector<int32_t>{1, 0}));
}

TEST(ChooseExpert, TheBiasChoosesButDoesNotWeigh) {
  const Chosen out = choose({0, 0, 0, 0}, {0, 0, 1, 0});
  EXPECT_EQ(out.choice[0], 2);
  EXPECT_EQ(out.gate[0], 0.25f);
}

TEST(ChooseExpert, MinusOneOnTheSkipSlotNeverWins) {
  const Chosen out = choose({-50, -50, 50}, {0, 0, -1});
  EXPECT_EQ(out.choice[0], 0);
}

TEST(ChooseExpert, HugeLogitsDoNotOverflow) {
  const Chosen out = choose({1e38f, -1e38f, 1e38f}, {0, 0, 0});
  EXPECT_EQ(out.probabilities, (std::vector<float>{0.5f, 0, 0.5f}));
}

TEST(ChooseExpert, MinusInfinityHasProbabilityZero) {
  const Chosen out = choose({0, -kInfinity}, {0, 0});
  EXPECT_EQ(out.probabilities, (std::vector<float>{1, 0}));
}

TEST(ChooseExpert, ANanAnywhereMakesItsRowNanAndTheChoiceStaysInRange) {
  for (int64_t K = 1; K <= kMaxLength; ++K) {
    for (int64_t at = 0; at < K; ++at) {
      std::vector<float> logits(K, 1.0f);
      logits[at] = kNan;
      const Chosen out = choose(logits, std::vector<float>(K));
      for (const float s : out.probabilities) ASSERT_TRUE(std::isnan(s)) << K << " " << at;
      ASSERT_TRUE(std::isnan(out.gate[0]));
      ASSERT_EQ(out.choice[0], 0);
    }
  }
}

TEST(ChooseExpert, InfiniteLogitsLeaveTheChoiceInRange) {
  EXPECT_EQ(choose({-kInfinity, -kInfinity}, {0, 0}).choice[0], 0);
  EXPECT_EQ(choose({1, kInfinity, 2}, {0, 0, 0}).choice[0], 0);
}

TEST(ChooseExpert, ANanBiasNeverWins) {
  EXPECT_EQ(choose({5, 1, 2}, {kNan, 0, 0}).choice[0], 2);
  EXPECT_EQ(choose({5, 1, 2}, {kNan, kNan, kNan}).choice[0], 0);
}

TEST(ChooseExpert, ARowDoesNotDependOnItsNeighbours) {
  const int64_t T = 300, K = 17;
  const auto logits = cast<float>(random_values(T * K, 1));
  const auto bias = cast<float>(random_values(K, 2, 0.1));
  const Chosen all = choose(logits, bias);
  for (int64_t t = 0; t < T; ++t) {
    const Chosen one = choose({logits.begin() + t * K, logits.begin() + (t + 1) * K}, bias);
    ASSERT_EQ(one.gate[0], all.gate[t]);
    ASSERT_EQ(one.choice[0], all.choice[t]);
  }
}

TEST(ChooseExpert, IsTheSameOnAnyNumberOfThreads) {
  Context ctx;
  const int64_t T = 1001, K = 17;
  const auto logits = cast<float>(random_values(T * K, 1));
  auto dgate = cast<float>(random_values(T, 3));
  expect_same_bits_on_1_and_2_threads([&] {
    Chosen out = choose(logits, std::vector<float>(K));
    std::vector<float> dlogits(T * K);
    choose_expert_backward(ctx, view(dlogits, {T, K}), view(dgate, {T}),
                           view(out.probabilities, {T, K}), view(out.choice, {T}));
    dlogits.insert(dlogits.end(), out.gate.begin(), out.gate.end());
    return dlogits;
  });
}

TEST(ChooseExpert, BackwardRefusesAChoiceOutOfRange) {
  Context ctx;
  std::vector<float> dlogits(3), dgate(1), s{0.2f, 0.3f, 0.5f};
  for (const int32_t bad : {-1, 3}) {
    std::vector<int32_t> choice{bad};
    EXPECT_THROW(choose_expert_backward(ctx, view(dlogits, {1, 3}), view(dgate, {1}),
                                        view(s, {1, 3}), view(choice, {1})),
                 ContractError);
  }
}

TEST(ChooseExpert, NoTokensIsNoWork) { EXPECT_TRUE(choose({}, {0, 0}).choice.empty()); }

TEST(CountChoices, AddsToTheCountsAlreadyThere) {
  Context ctx;
  std::vector<int64_t> counts{100, 0, 0};
  std::vector<int32_t> choice{2, 0, 2, 2};
  count_choices(ctx, view(counts, {3}), view(choice, {4}));
  EXPECT_EQ(counts, (std::vector<int64_t>{101, 0, 3}));
}

TEST(CountChoices, RefusesAChoiceOutOfRange) {
  Context ctx;
  std::vector<int64_t> counts(2);
  std::vector<int32_t> choice{2};
  EXPECT_THROW(count_choices(ctx, view(counts, {2}), view(choice, {1})), ContractError);
}

}  // namespace
}  // namespace zaya
