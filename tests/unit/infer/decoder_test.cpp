#include "infer/decoder.h"

#include <gtest/gtest.h>

#include "infer/sampler.h"
#include "support/tiny_model.h"

namespace zaya {
namespace {

using test::tiny_config;
using test::tiny_model;
using test::TinyBatch;
using test::values_of;

std::vector<float> full_forward_logits(Zaya& model, const TinyBatch& data) {
  Context ctx;
  model.forward(ctx, data.tokens());
  std::vector<float> logits(static_cast<size_t>(model.config().vocab_size));
  const Tensor row(logits.data(), DType::f32, {1, model.config().vocab_size});
  model.logits(ctx, row, static_cast<int64_t>(data.ids.size()) - 1);
  return logits;
}

TEST(Decoder, AnyChunkingGivesTheFullForwardsBits) {
  Context ctx;
  for (int64_t taps : {1, 2, 4}) {
    ModelConfig config = tiny_config();
    config.cca_time1 = taps;
    Zaya model = tiny_model(config);
    const TinyBatch data(config, {41});
    const std::vector<float> wanted = full_forward_logits(model, data);
    for (int64_t chunk : {1, 2, 7, 41}) {
      Decoder decoder(model, 41, chunk);
      EXPECT_EQ(values_of(decoder.feed(ctx, data.ids)), wanted) << taps << " " << chunk;
    }
  }
}

TEST(Decoder, ResetForgets) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  const TinyBatch data(model.config(), {20});
  Decoder decoder(model, 20);
  const std::vector<float> first = values_of(decoder.feed(ctx, data.ids));
  decoder.reset();
  EXPECT_EQ(values_of(decoder.feed(ctx, data.ids)), first);
}

TEST(Decoder, GrowsWithoutForgetting) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  const TinyBatch data(model.config(), {30});
  const std::span<const int32_t> ids = data.ids;
  Decoder whole(model, 30), growing(model, 11);
  growing.feed(ctx, ids.first(11));
  growing.reserve(30);
  EXPECT_EQ(values_of(growing.feed(ctx, ids.subspan(11))), values_of(whole.feed(ctx, ids)));
}

TEST(Decoder, RefusesMoreThanItsCapacity) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  Decoder decoder(model, 4);
  EXPECT_THROW(decoder.feed(ctx, TinyBatch(model.config(), {5}).ids), ContractError);
}

std::vector<int32_t> draw(std::vector<float> logits, const SamplingOptions& options, int count) {
  TokenSampler sampler(options);
  std::vector<int32_t> drawn;
  const auto size = static_cast<int64_t>(logits.size());
  for (int i = 0; i < count; ++i)
    drawn.push_back(sampler.next(Tensor(logits.data(), DType::f32, {1, size})));
  return drawn;
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

TEST(TokenSampler, TopKAndTopPKeepTheLikeliestOnly) {
  for (int32_t id : draw({5, 4, 3, 2}, {.temperature = 10, .top_k = 2}, 200)) EXPECT_LT(id, 2);
  // Probabilities about 0.64, 0.24, 0.09, 0.03: 0.8 needs the first two.
  for (int32_t id : draw({5, 4, 3, 2}, {.temperature = 1, .top_p = 0.8f}, 200)) EXPECT_LT(id, 2);
}

TEST(TokenSampler, EqualSeedsGiveEqualTokens) {
  const std::vector<float> logits(50, 0.0f);
  EXPECT_EQ(draw(logits, {.seed = 3}, 20), draw(logits, {.seed = 3}, 20));
  EXPECT_NE(draw(logits, {.seed = 3}, 20), draw(logits, {.seed = 4}, 20));
}

TEST(TokenSampler, RefusesLogitsThatAreNotFinite) { EXPECT_THROW(draw({0, NAN}, {}, 1), Error); }

}  // namespace
}  // namespace zaya
