#include "infer/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "support/temp_folder.h"

namespace zaya {
namespace {

using testing::HasSubstr;

Tensor row_of(std::vector<float>& logits) {
  return Tensor(logits.data(), DType::f32, {1, static_cast<int64_t>(logits.size())});
}

std::vector<int32_t> draw(std::vector<float> logits, const SamplingOptions& options, int count) {
  TokenSampler sampler(options, static_cast<int32_t>(logits.size()));
  std::vector<int32_t> drawn;
  for (int i = 0; i < count; ++i) drawn.push_back(sampler.next(row_of(logits)));
  return drawn;
}

// The definition in sampler.h, word by word, by sorting everything.
int32_t defined(std::vector<float> x, const SamplingOptions& o, const std::vector<int32_t>& seen,
                uint64_t draws) {
  for (const LogitBias& bias : o.logit_bias) x[static_cast<size_t>(bias.id)] += bias.bias;
  for (size_t id = 0; id < x.size(); ++id)
    if (std::count(seen.begin(), seen.end(), static_cast<int32_t>(id)))
      x[id] = x[id] < 0 ? x[id] * o.repetition_penalty : x[id] / o.repetition_penalty;
  std::vector<int32_t> order(x.size());
  for (size_t i = 0; i < x.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto value = [&](int32_t id) { return x[static_cast<size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return value(a) > value(b); });
  if (o.temperature == 0) return order[0];
  const float top = value(order[0]);
  if (o.top_k > 0 && o.top_k < static_cast<int64_t>(order.size()))
    order.resize(static_cast<size_t>(o.top_k));
  std::vector<Candidate> kept;
  uint64_t sum = 0;
  for (const int32_t id : order) {
    kept.push_back({weight_of(exp_of_negative((value(id) - top) / o.temperature)), id});
    sum += kept.back().weight;
  }
  std::sort(kept.begin(), kept.end());
  uint64_t run = 0;
  size_t size = 0;
  while (size < kept.size() &&
         (o.top_p == 1 || static_cast<double>(run) < o.top_p * static_cast<double>(sum)))
    run += kept[size++].weight;
  while (size > 0 && kept[size - 1].weight < weight_of(o.min_p)) run -= kept[--size].weight;
  uint64_t at = Random(o.seed, "sampling").below(draws, run);
  for (const Candidate& candidate : kept) {
    if (at < candidate.weight) return candidate.id;
    at -= candidate.weight;
  }
  return -1;
}

TEST(TokenSampler, ChoosesAsDefined) {
  const Random random(3, "cases");
  uint64_t at = 0;
  for (int round = 0; round < 120; ++round) {
    SamplingOptions o;
    const auto pick = [&](auto... of) {
      const double choices[] = {static_cast<double>(of)...};
      return choices[random.below(at++, sizeof...(of))];
    };
    o.temperature = static_cast<float>(pick(0, 0.1, 0.8, 1, 7, 1e30));
    o.top_k = static_cast<int64_t>(pick(0, 0, 1, 3, 40, 700));
    o.top_p = static_cast<float>(pick(1, 1, 0.95, 0.5, 1e-6, 0.9999));
    o.min_p = static_cast<float>(pick(0, 0, 0.01, 0.3, 1));
    o.repetition_penalty = static_cast<float>(pick(1, 1.3, 0.7));
    o.seed = static_cast<uint64_t>(round);
    if (round % 3 == 0) o.logit_bias = {{5, 2.5f}, {6, -INFINITY}, {700, 1e6f}, {699, -1e6f}};
    const double scale = pick(0, 0.5, 3, 20);
    std::vector<int32_t> seen{1, 2, 3};
    TokenSampler sampler(o, 701);
    sampler.see(seen);
    for (uint64_t draws = 0; draws < 8; ++draws) {
      std::vector<float> logits(710);
      for (float& x : logits) x = static_cast<float>(scale * random.normal(at++));
      std::vector<float> known(logits.begin(), logits.begin() + 701);
      const int32_t wanted = defined(known, o, seen, draws);
      EXPECT_EQ(sampler.next(row_of(logits)), wanted) << round << " " << draws;
      seen.push_back(wanted);
    }
  }
}

TEST(TokenSampler, TemperatureZeroTakesTheLikeliest) {
  EXPECT_EQ(draw({0, 3, 1, 3}, {.temperature = 0}, 2), (std::vector<int32_t>{1, 1}));
}

TEST(TokenSampler, FrequenciesFollowTheProbabilities) {
  // Probabilities 1/2, 1/4, 1/4.
  const auto drawn = draw({std::log(2.0f), 0, 0}, {.temperature = 1}, 4000);
  EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), 0), 2000, 160);  // five standard deviations
  EXPECT_NEAR(std::count(drawn.begin(), drawn.end(), 2), 1000, 140);
}

TEST(TokenSampler, TopKTopPAndMinPKeepTheLikeliestOnly) {
  for (int32_t id : draw({5, 4, 3, 2}, {.temperature = 10, .top_k = 2}, 200)) EXPECT_LT(id, 2);
  // Probabilities about 0.64, 0.24, 0.09, 0.03: 0.8 needs the first two.
  for (int32_t id : draw({5, 4, 3, 2}, {.temperature = 1, .top_p = 0.8f}, 200)) EXPECT_LT(id, 2);
  // The second is 0.37 times as likely as the first, the third 0.14 times.
  const auto drawn = draw({5, 4, 3, 2}, {.temperature = 1, .min_p = 0.3f}, 200);
  EXPECT_EQ(*std::max_element(drawn.begin(), drawn.end()), 1);
}

TEST(TokenSampler, EqualSeedsGiveEqualTokens) {
  const std::vector<float> logits(50, 0.0f);
  EXPECT_EQ(draw(logits, {.seed = 3}, 20), draw(logits, {.seed = 3}, 20));
  EXPECT_NE(draw(logits, {.seed = 3}, 20), draw(logits, {.seed = 4}, 20));
}

TEST(TokenSampler, NeverChoosesRowsBeyondTheTokens) {
  std::vector<float> logits(100, 0.0f);
  for (size_t i = 60; i < 100; ++i) logits[i] = 50;
  for (float temperature : {0.0f, 1.0f}) {
    TokenSampler sampler({.temperature = temperature}, 60);
    for (int i = 0; i < 50; ++i) EXPECT_LT(sampler.next(row_of(logits)), 60);
  }
}

// transformers' RepetitionPenaltyLogitsProcessor: positive scores divided, negative multiplied.
TEST(TokenSampler, RepetitionPenaltyCountsThePromptAndTheChoices) {
  std::vector<float> logits{2.0f, 1.9f, 1.5f, -1.0f};
  TokenSampler sampler({.temperature = 0, .repetition_penalty = 1.2f}, 4);
  const int32_t prompt[] = {0, 9, -1};  // ids that are none of its own do not matter
  sampler.see(prompt);
  EXPECT_EQ(sampler.next(row_of(logits)), 1);  // 2 / 1.2 < 1.9
  EXPECT_EQ(sampler.next(row_of(logits)), 0);  // 1.67, 1.58, 1.5
  sampler.forget();
  EXPECT_EQ(sampler.next(row_of(logits)), 0);
}

TEST(TokenSampler, BiasMovesAndForbids) {
  EXPECT_EQ(draw({0, 3}, {.temperature = 0, .logit_bias = {{0, 4}}}, 1)[0], 0);
  for (int32_t id : draw({9, 0, 0}, {.logit_bias = {{0, -INFINITY}}}, 100)) EXPECT_GT(id, 0);
  EXPECT_THROW(draw({9}, {.logit_bias = {{0, -INFINITY}}}, 1), Error);
}

TEST(TokenSampler, RefusesLogitsThatAreNotFinite) { EXPECT_THROW(draw({0, NAN}, {}, 1), Error); }

std::string refusal(const SamplingOptions& options) {
  return error_of([&] { check_sampling(options); });
}

TEST(CheckSampling, NamesTheFlagWhatWasWantedAndWhatCame) {
  EXPECT_EQ(refusal({.min_p = 2}), "--min-p: wanted 0 to 1, got 2");
  EXPECT_EQ(refusal({.temperature = NAN}), "--temperature: wanted 0 or more, got nan");
  EXPECT_EQ(refusal({.top_k = -1}), "--top-k: wanted 0 (all) or more, got -1");
  EXPECT_EQ(refusal({.top_p = 0}), "--top-p: wanted more than 0 and at most 1, got 0");
  EXPECT_EQ(refusal({.repetition_penalty = 0}), "--repetition-penalty: wanted 0.01 to 100, got 0");
  EXPECT_THAT(refusal({.logit_bias = {{1, 1e7f}}}), HasSubstr("--logit-bias: wanted -inf, or"));
  EXPECT_EQ(refusal({}), "");
}

}  // namespace
}  // namespace zaya
