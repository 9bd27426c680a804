#include "infer/decoder.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace zaya
