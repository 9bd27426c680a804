#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace zaya {
namespace {

// 258 ids: the byte tokenizer's.
ModelConfig byte_config() {
  ModelConfig c = test::tiny_config();
  c.vocab_size = 258;
  return c;
}

double nothing_done = 0;
void note(double done) { nothing_done = done; }

TEST(Perplexity, OfAModelThatKnowsNothingIsItsVocabulary) {
  Context ctx;
  Zaya model = test::tiny_model(byte_config());
  // A head of zeros gives every token the same logit.
  Parameter& head = model.parameters().find("model.embed_tokens.weight");
  std::fill_n(head.weight.as<float>(), head.weight.size(), 0.0f);
  const auto tokenizer = make_byte_tokenizer();
  const TextScore score =
      score_text(ctx, model, *tokenizer, "twelve bytes", 6, ReadAs::prompt, note);
  EXPECT_EQ(score.tokens, 12);  // bos foretells the first of each window
  EXPECT_EQ(score.bytes, 12);
  EXPECT_NEAR(score.perplexity(), 258, 1e-3);
  EXPECT_NEAR(score.bits_per_byte(), std::log2(258.0), 1e-6);
  EXPECT_EQ(nothing_done, 1);
}

TEST(Perplexity, ReadOneByOneIsThatOfThePrompt) {
  Context ctx;
  Zaya model = test::tiny_model(byte_config());
  const auto tokenizer = make_byte_tokenizer();
  const std::string text = "A text of more than one window, and of an odd end.";
  const auto score = [&](ReadAs read_as) {
    return score_text(ctx, model, *tokenizer, text, 16, read_as, note);
  };
  const TextScore at_once = score(ReadAs::prompt), by_token = score(ReadAs::generated);
  EXPECT_EQ(at_once.tokens, static_cast<int64_t>(text.size()));
  EXPECT_EQ(by_token.tokens, at_once.tokens);
  EXPECT_NEAR(by_token.loss_sum, at_once.loss_sum, 1e-5 * at_once.loss_sum);
}

TEST(Perplexity, RefusesNothingAndATokenizerOfAnotherModel) {
  Context ctx;
  const auto tokenizer = make_byte_tokenizer();
  Zaya model = test::tiny_model(byte_config());
  EXPECT_THROW(score_text(ctx, model, *tokenizer, "", 16, ReadAs::prompt, note), Error);
  Zaya other = test::tiny_model(test::tiny_config());
  EXPECT_THROW(score_text(ctx, other, *tokenizer, "text", 16, ReadAs::prompt, note), Error);
}

}  // namespace
}  // namespace zaya
