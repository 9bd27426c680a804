#include "model/flops.h"

#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace zaya {
namespace {

// Twice a multiply-add, forward and two backward products.
constexpr double kFlops = 2 * 3;

// D 4, two query heads and one key head of 2, so q 4, k 2 and C 6; E 3, I 5, R 3, V 11; 2 blocks.
ModelConfig config() {
  ModelConfig c;
  c.vocab_size = 11;
  c.hidden_size = 4;
  c.num_hidden_layers = 2;
  c.num_attention_heads = 2;
  c.num_key_value_heads = 1;
  c.head_dim = 2;
  c.cca_time0 = 3;
  c.cca_time1 = 2;
  c.num_experts = 3;
  c.moe_intermediate_size = 5;
  c.router_hidden_size = 3;
  return c;
}

double flops_of(OpGroup group, const ModelConfig& c, const TokenBatch& batch) {
  const int64_t every_token = c.num_hidden_layers * batch.tokens();
  return training_flops(c, batch, every_token)[static_cast<size_t>(group)] / kFlops;
}

TokenBatch documents(const std::vector<int32_t>& lengths) {
  return test::TinyBatch(config(), lengths).tokens();
}

TEST(TrainingFlops, CountTheMatricesOfOneTokenByHand) {
  const TokenBatch one = documents({1});
  // Queries 4 x 4, keys 2 x 4, values 2 x 4 (two halves), output 4 x 4.
  EXPECT_EQ(flops_of(OpGroup::projections, config(), one), 2 * (16 + 8 + 8 + 16));
  // 6 channels of 3 taps, and 6 channels that read 2 channels of 2 taps.
  EXPECT_EQ(flops_of(OpGroup::convolutions, config(), one), 2 * (6 * 3 + 6 * 2 * 2));
  // Down 3 x 4, two of 3 x 3, and 4 classes (one skips) x 3.
  EXPECT_EQ(flops_of(OpGroup::router, config(), one), 2 * (12 + 9 + 9 + 12));
  // Gate and up 10 x 4, down 4 x 5.
  EXPECT_EQ(flops_of(OpGroup::experts, config(), one), 2 * (40 + 20));
  EXPECT_EQ(flops_of(OpGroup::head, config(), one), 11 * 4);
  // Itself: a score and a sum over 2 heads of 2.
  EXPECT_EQ(flops_of(OpGroup::attention, config(), one), 2 * (4 + 4));
  EXPECT_EQ(flops_of(OpGroup::norms, config(), one), 0);
  EXPECT_EQ(flops_of(OpGroup::other, config(), one), 0);
}

TEST(TrainingFlops, EveryGroupButAttentionIsProportionalToTheTokens) {
  const TokenBatch one = documents({1}), seven = documents({7});
  for (size_t g = 0; g < kOpGroups; ++g) {
    const auto group = static_cast<OpGroup>(g);
    if (group == OpGroup::attention) continue;
    EXPECT_EQ(flops_of(group, config(), seven), 7 * flops_of(group, config(), one)) << g;
  }
}

// Attention's cost in pairs of a query and a key, over both blocks.
double pairs(const ModelConfig& c, const TokenBatch& batch) {
  return flops_of(OpGroup::attention, c, batch) / (2 * 4);
}

TEST(TrainingFlops, AttentionSeesItsOwnDocumentUpToItself) {
  EXPECT_EQ(pairs(config(), documents({5})), 2 * (1 + 2 + 3 + 4 + 5));
  EXPECT_EQ(pairs(config(), documents({3, 1, 2})), 2 * ((1 + 2 + 3) + 1 + (1 + 2)));
}

TEST(TrainingFlops, AWindowBoundsTheKeysOfItsBlocksOnly) {
  ModelConfig c = config();
  c.sliding_window = 3;
  c.sliding_layers = {true, false};
  EXPECT_EQ(pairs(c, documents({5})), (1 + 2 + 3 + 3 + 3) + (1 + 2 + 3 + 4 + 5));
  // Shorter than the window.
  EXPECT_EQ(pairs(c, documents({2, 3})), 2 * ((1 + 2) + (1 + 2 + 3)));
}

TEST(TrainingFlops, AContinuationSeesWhatCameBeforeIt) {
  ModelConfig c = config();
  const std::vector<int32_t> ids{1, 2, 3};
  TokenBatch batch;
  const Continuation next{ids, 4, 0};
  batch.set_continuations({&next, 1});
  EXPECT_EQ(pairs(c, batch), 2 * (5 + 6 + 7));
  c.sliding_layers = {true, false};
  c.sliding_window = 6;  // bounds the last query only
  EXPECT_EQ(pairs(c, batch), (5 + 6 + 6) + (5 + 6 + 7));
  c.sliding_window = 3;  // all of them
  EXPECT_EQ(pairs(c, batch), (3 + 3 + 3) + (5 + 6 + 7));
}

TEST(TrainingFlops, TokensThatSkipTheExpertsCostThemNothing) {
  const TokenBatch batch = documents({5});
  const auto experts = [&](int64_t tokens) {
    return training_flops(config(), batch, tokens)[static_cast<size_t>(OpGroup::experts)];
  };
  EXPECT_EQ(experts(0), 0);
  EXPECT_EQ(experts(7), kFlops * 7 * (40 + 20));
}

}  // namespace
}  // namespace zaya
