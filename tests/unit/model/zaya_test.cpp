#include "model/zaya.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/elementwise/elementwise.h"
#include "support/oracle.h"
#include "support/tiny_model.h"

namespace zaya {
namespace {

using test::tiny_config;
using test::tiny_model;
using test::TinyBatch;
using test::values_of;

std::vector<float> gradients(Zaya& model, const TokenBatch& batch) {
  Context ctx;
  fill_zero(ctx, model.parameters().flat_gradients());
  model.forward_backward(ctx, batch, 0.01f);
  return values_of(model.parameters().flat_gradients());
}

TEST(Zaya, ThreadCountChangesNoBit) {
  Zaya model = tiny_model(tiny_config());
  const TokenBatch batch = TinyBatch(model.config(), {300, 1, 211, 7}).tokens();
  set_thread_count(1);
  const std::vector<float> one = gradients(model, batch);
  set_thread_count(2);
  const std::vector<float> two = gradients(model, batch);
  set_thread_count(0);
  EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0);
}

TEST(Zaya, PackedDocumentsGiveEachTokenTheBitsItHasAlone) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  const std::vector<int32_t> lengths{5, 1, 130, 18};
  const TinyBatch packed(model.config(), lengths);
  model.forward(ctx, packed.tokens());
  model.losses(ctx, packed.tokens());
  const std::vector<float> together = values_of(model.activations().head.losses);
  for (size_t s = 0; s < lengths.size(); ++s) {
    const int32_t begin = packed.cu_seqlens[s], length = lengths[s];
    const std::vector<int32_t> bounds{0, length};
    TokenBatch alone;
    alone.set(std::span(packed.ids).subspan(begin, length),
              std::span(packed.labels).subspan(begin, length), bounds);
    model.forward(ctx, alone);
    model.losses(ctx, alone);
    const std::vector<float> separate = values_of(model.activations().head.losses);
    EXPECT_EQ(std::memcmp(separate.data(), together.data() + begin, length * sizeof(float)), 0)
        << "document " << s;
  }
}

TEST(Zaya, GradientsOfMicroBatchesAddUpToTheWholeBatchs) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  const TinyBatch first(model.config(), {40, 24}, 1), second(model.config(), {64}, 2);
  TinyBatch both = first;
  both.ids.insert(both.ids.end(), second.ids.begin(), second.ids.end());
  both.labels.insert(both.labels.end(), second.labels.begin(), second.labels.end());
  both.cu_seqlens.push_back(128);
  const std::vector<float> whole = gradients(model, both.tokens());
  fill_zero(ctx, model.parameters().flat_gradients());
  model.forward_backward(ctx, first.tokens(), 0.01f);
  model.forward_backward(ctx, second.tokens(), 0.01f);
  // Equal but for the order of fp32 sums over tokens.
  EXPECT_LT(test::relative_error(test::widen(values_of(model.parameters().flat_gradients())),
                                 test::widen(whole)),
            1e-5);
}

TEST(Zaya, LossGradientPredictsTheChangeOfTheLoss) {
  // Along the gradient itself, a central difference of the whole model's loss: d loss = |g|^2 h.
  Context ctx;
  ModelConfig config = tiny_config();
  config.tie_word_embeddings = false;
  Zaya model = tiny_model(config);
  const TokenBatch batch = TinyBatch(config, {60, 33}).tokens();
  const std::vector<float> g = gradients(model, batch);
  double squares = 0;
  for (float v : g) squares += static_cast<double>(v) * static_cast<double>(v);
  const Tensor weights = model.parameters().flat_weights();
  const std::vector<float> start = values_of(weights);
  const auto loss_at = [&](double h) {
    for (size_t i = 0; i < g.size(); ++i)
      weights.as<float>()[i] = static_cast<float>(start[i] + h * g[i]);
    model.forward(ctx, batch);
    return model.losses(ctx, batch) * 0.01;
  };
  const double h = 1e-4 / std::sqrt(squares);
  const double slope = (loss_at(h) - loss_at(-h)) / (2 * h);
  EXPECT_NEAR(slope / squares, 1.0, 0.02);  // fp32 losses over a step this short; no expert flips
}

TEST(Zaya, Bf16FollowsF32) {
  Context ctx;
  const TinyBatch data(tiny_config(), {90});
  Zaya exact = tiny_model(tiny_config()), rounded = tiny_model(tiny_config(), DType::bf16);
  exact.forward(ctx, data.tokens());
  rounded.forward(ctx, data.tokens());
  // Eight bits of mantissa through three blocks.
  const double error =
      test::relative_error(test::widen(values_of(rounded.activations().blocks.back().out)),
                           test::widen(values_of(exact.activations().blocks.back().out)));
  EXPECT_LT(error, 0.1);
  EXPECT_GT(error, 1e-5);
}

TEST(Zaya, ScratchIsPlannedForEveryShape) {
  // A module that takes more scratch than planned breaks the arena's contract and throws.
  for (int64_t experts : {1, 16})
    for (int64_t key_heads : {1, 2, 4})
      for (int64_t taps : {1, 4})
        for (DType compute : {DType::f32, DType::bf16}) {
          ModelConfig config = tiny_config();
          config.num_experts = experts;
          config.num_key_value_heads = key_heads;
          config.cca_time0 = 5 - taps;
          config.cca_time1 = taps;
          config.skip = Skip::pass;
          Zaya model = tiny_model(config, compute);
          for (const std::vector<int32_t>& lengths :
               {std::vector<int32_t>{1}, {1, 1, 1, 1, 1, 1}, {200, 3}}) {
            const std::vector<float> g = gradients(model, TinyBatch(config, lengths).tokens());
            EXPECT_TRUE(std::all_of(g.begin(), g.end(), [](float v) { return std::isfinite(v); }));
          }
        }
}

TEST(Parameters, CountsOfThePublishedModel) {
  ModelConfig c;
  c.vocab_size = 262272;
  c.hidden_size = 2048;
  c.num_hidden_layers = 40;
  c.num_attention_heads = 8;
  c.num_key_value_heads = 2;
  c.head_dim = 128;
  c.num_experts = 16;
  c.moe_intermediate_size = 2048;
  c.router_hidden_size = 256;
  const ParameterCounts counts = count_parameters(c);
  EXPECT_NEAR(static_cast<double>(counts.total), 8.840e9, 0.5e6);
  EXPECT_NEAR(static_cast<double>(counts.without_embeddings), 8.303e9, 0.5e6);
  EXPECT_NEAR(static_cast<double>(counts.active), 0.754e9, 0.5e6);
}

TEST(Parameters, StartValuesAreAFunctionOfSeedAndName) {
  Context ctx;
  Zaya a = tiny_model(tiny_config()), b = tiny_model(tiny_config());
  EXPECT_EQ(values_of(a.parameters().flat_weights()), values_of(b.parameters().flat_weights()));
  b.parameters().initialize(ctx, 6);
  EXPECT_NE(values_of(a.parameters().flat_weights()), values_of(b.parameters().flat_weights()));
}

TEST(ModelConfig, RefusesWhatDoesNotFitTogether) {
  ModelConfig c = tiny_config();
  c.num_key_value_heads = 3;
  try {
    check_config(c, "config.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "config.json: num_key_value_heads: wanted a divisor of num_attention_heads (4), "
                 "got 3");
  }
}

}  // namespace
}  // namespace zaya
