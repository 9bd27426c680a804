#include "infer/decoder.h"

#include <gtest/gtest.h>

#include "support/oracle.h"
#include "support/tiny_model.h"

namespace zaya {
namespace {

using test::relative_error;
using test::tiny_config;
using test::tiny_model;
using test::TinyBatch;
using test::values_of;
using test::widen;

using Piece = Decoder::Piece;

Tensor feed(Context& ctx, Decoder& decoder, std::span<const int32_t> ids, int64_t sequence = 0) {
  const Piece piece{sequence, ids};
  return decoder.feed(ctx, {&piece, 1});
}

Tensor step(Context& ctx, Decoder& decoder, int32_t id, int64_t sequence = 0) {
  const Piece piece{sequence, {&id, 1}};
  return decoder.step(ctx, {&piece, 1});
}

// Of the last token.
std::vector<float> full_forward_logits(Zaya& model, const TinyBatch& data) {
  Context ctx;
  model.forward(ctx, data.tokens());
  std::vector<float> logits(static_cast<size_t>(model.config().vocab_size));
  const Tensor row(logits.data(), DType::f32, {1, model.config().vocab_size});
  model.logits(ctx, row, static_cast<int64_t>(data.ids.size()) - 1);
  return logits;
}

double difference(const std::vector<float>& got, const std::vector<float>& wanted) {
  return relative_error(widen(got), widen(wanted));
}

std::vector<ModelConfig> configs() {
  std::vector<ModelConfig> all;
  for (int64_t taps : {1, 2, 4}) {
    all.push_back(tiny_config());
    all.back().cca_time1 = taps;
  }
  all.push_back(tiny_config());
  all.back().skip = Skip::pass;
  return all;
}

TEST(Decoder, APromptHasTheSameBitsHoweverItIsCut) {
  Context ctx;
  for (DType compute : {DType::f32, DType::bf16}) {
    for (const ModelConfig& config : configs()) {
      Zaya model = tiny_model(config, compute);
      const TinyBatch data(config, {41});
      Decoder whole(model, 1, 41, 41);
      const std::vector<float> wanted = values_of(feed(ctx, whole, data.ids));
      if (compute == DType::f32) {  // the head's sums are in another order
        EXPECT_LT(difference(wanted, full_forward_logits(model, data)), 1e-6);
      }
      for (int64_t chunk : {1, 2, 7}) {
        Decoder decoder(model, 1, 41, chunk);
        EXPECT_EQ(values_of(feed(ctx, decoder, data.ids)), wanted) << chunk;
      }
      Decoder calls(model, 1, 41);
      feed(ctx, calls, std::span(data.ids).first(13));
      EXPECT_EQ(values_of(feed(ctx, calls, std::span(data.ids).subspan(13))), wanted);
    }
  }
}

TEST(Decoder, StepsComputeWhatPromptsDo) {
  Context ctx;
  for (const ModelConfig& config : configs()) {
    Zaya model = tiny_model(config);
    const TinyBatch data(config, {41});
    Decoder decoder(model, 1, 41);
    std::vector<float> last;
    for (int32_t id : data.ids) last = values_of(step(ctx, decoder, id));
    EXPECT_LT(difference(last, full_forward_logits(model, data)), 1e-5);
  }
}

// Some prompts together, then tokens of theirs together, some sequences sitting out.
TEST(Decoder, ASequencesBitsDoNotDependOnTheOthers) {
  Context ctx;
  for (DType compute : {DType::f32, DType::bf16}) {
    Zaya model = tiny_model(tiny_config(), compute);
    const std::vector<int32_t> lengths{5, 1, 30, 12};
    std::vector<TinyBatch> data;
    for (size_t s = 0; s < lengths.size(); ++s)
      data.emplace_back(model.config(), std::vector{lengths[s]}, static_cast<uint32_t>(s + 1));
    for (int64_t chunk : {3, 512}) {
      Decoder together(model, 4, 40, chunk);
      const std::vector<Piece> prompts{
          {2, data[2].ids}, {0, data[0].ids}, {1, data[1].ids}, {3, data[3].ids}};
      const std::vector<float> after_prompts = values_of(together.feed(ctx, prompts));
      const int32_t next = 7;
      const std::vector<Piece> steps{{3, {&next, 1}}, {0, {&next, 1}}};
      const std::vector<float> after_steps = values_of(together.step(ctx, steps));

      const int64_t V = model.config().vocab_size;
      const auto row = [&](const std::vector<float>& rows, int64_t i) {
        return std::vector<float>(rows.begin() + i * V, rows.begin() + (i + 1) * V);
      };
      for (size_t i = 0; i < prompts.size(); ++i) {
        Decoder alone(model, 1, 40);
        EXPECT_EQ(values_of(feed(ctx, alone, prompts[i].ids)),
                  row(after_prompts, static_cast<int64_t>(i)));
        const auto also = std::find_if(steps.begin(), steps.end(), [&](const Piece& piece) {
          return piece.sequence == prompts[i].sequence;
        });
        if (also != steps.end()) {
          EXPECT_EQ(values_of(step(ctx, alone, next)), row(after_steps, also - steps.begin()));
        }
      }
    }
  }
}

TEST(Decoder, ResetForgetsOneSequence) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  const TinyBatch data(model.config(), {20}), more(model.config(), {9}, 3);
  Decoder decoder(model, 2, 29);
  feed(ctx, decoder, data.ids, 1);
  const std::vector<float> first = values_of(feed(ctx, decoder, data.ids, 0));
  decoder.reset(0);
  EXPECT_EQ(decoder.length(0), 0);
  EXPECT_EQ(values_of(feed(ctx, decoder, data.ids, 0)), first);
  Decoder other(model, 1, 29);
  feed(ctx, other, data.ids);
  EXPECT_EQ(values_of(feed(ctx, decoder, more.ids, 1)), values_of(feed(ctx, other, more.ids)));
}

TEST(Decoder, GrowsWithoutForgetting) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  const TinyBatch data(model.config(), {30});
  const std::span<const int32_t> ids = data.ids;
  Decoder whole(model, 2, 30), growing(model, 2, 11);
  for (int64_t s : {0, 1}) feed(ctx, growing, ids.first(11), s);
  growing.reserve(30);
  for (int64_t s : {0, 1})
    EXPECT_EQ(values_of(feed(ctx, growing, ids.subspan(11), s)),
              values_of(feed(ctx, whole, ids, s)));
}

TEST(Decoder, RefusesMoreThanItsCapacity) {
  Context ctx;
  Zaya model = tiny_model(tiny_config());
  Decoder decoder(model, 1, 4);
  EXPECT_THROW(feed(ctx, decoder, TinyBatch(model.config(), {5}).ids), ContractError);
}

}  // namespace
}  // namespace zaya
