#include "infer/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "support/tiny_model.h"
#include "support/turn_tokenizer.h"

namespace zaya {
namespace {

using test::tiny_config;
using test::tiny_model;
using test::TurnTokenizer;
using testing::HasSubstr;

ModelConfig text_config(int64_t longest = 4096) {
  ModelConfig config = tiny_config();
  config.vocab_size = 264;
  config.max_position_embeddings = longest;
  return config;
}

class GenerateTest : public testing::Test {
 protected:
  GenerateTest() { options_.write.max_tokens = 20; }
  std::vector<std::vector<int32_t>> prompts(const std::vector<std::string>& texts) const {
    std::vector<std::vector<int32_t>> ids;
    for (const std::string& text : texts) ids.push_back(tokenizer_.encode_document(text));
    return ids;
  }
  std::vector<Generation> run(Zaya& model, const std::vector<std::string>& texts,
                              const GenerateHooks& hooks = {}) {
    return generate(ctx_, model, tokenizer_, prompts(texts), options_, hooks);
  }
  // Makes the model write `byte` and nothing else.
  void always(int32_t id) { options_.sampling.logit_bias = {{id, 1000}}; }
  Context ctx_;
  TurnTokenizer tokenizer_;
  GenerateOptions options_;
};

TEST_F(GenerateTest, ABatchGivesEachPromptsOwnText) {
  Zaya model = tiny_model(text_config());
  const std::vector<std::string> texts = {"a", "hello there", "", "bb", std::string(600, 'y')};
  options_.sampling.repetition_penalty = 1.1f;
  options_.sampling.logit_bias = {{TurnTokenizer::kEos, 4}};  // texts of different lengths
  std::vector<std::string> alone;
  for (const std::string& text : texts) alone.push_back(run(model, {text})[0].text);
  for (const int64_t batch : {1, 2, 3, 16}) {
    options_.batch = batch;
    const std::vector<Generation> together = run(model, texts);
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(together[i].text, alone[i]) << batch;
  }
}

TEST_F(GenerateTest, HooksHearEveryTextOnce) {
  Zaya model = tiny_model(text_config());
  std::map<size_t, std::string> heard;
  std::vector<size_t> done;
  GenerateHooks hooks;
  hooks.on_text = [&](size_t index, std::string_view text) { heard[index] += text; };
  hooks.on_done = [&](size_t index, const Generation&) { done.push_back(index); };
  options_.batch = 2;
  const auto results = run(model, {"a", "b", "c"}, hooks);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(heard[i], results[i].text);
  std::sort(done.begin(), done.end());
  EXPECT_EQ(done, (std::vector<size_t>{0, 1, 2}));
}

TEST_F(GenerateTest, ThePromptsTokensCountAsRepeated) {
  Zaya model = tiny_model(text_config());
  options_.sampling = {
      .temperature = 0, .repetition_penalty = 2, .logit_bias = {{'x', 1000}, {'y', 900}}};
  options_.write.max_tokens = 1;
  EXPECT_EQ(run(model, {"a"})[0].text, "x");
  EXPECT_EQ(run(model, {"ax"})[0].text, "y");
}

TEST_F(GenerateTest, ManyTokensAreWrittenAndCounted) {
  Zaya model = tiny_model(text_config());
  always('x');
  options_.write.max_tokens = 1500;  // more than there is room for at the start
  const Generation done = run(model, {"abc"})[0];
  EXPECT_EQ(done.text, std::string(1500, 'x'));
  EXPECT_EQ(done.stopped, Stopped::length);
  EXPECT_EQ(done.prompt_tokens, 4);
  EXPECT_EQ(done.new_tokens, 1500);
  EXPECT_EQ(done.decode_steps, 1499);
}

TEST_F(GenerateTest, AnEndTokenEndsAndIsNoText) {
  Zaya model = tiny_model(text_config());
  options_.write.ends = {'q', 'x'};
  always('x');
  const Generation done = run(model, {"abc"})[0];
  EXPECT_EQ(done.text, "");
  EXPECT_EQ(done.stopped, Stopped::eos);
  EXPECT_EQ(done.new_tokens, 1);
}

TEST_F(GenerateTest, StopStringsSpanTokens) {
  Zaya model = tiny_model(text_config());
  always('x');
  options_.write.stops = {"never", "xxx"};
  std::string heard;
  GenerateHooks hooks;
  hooks.on_text = [&](size_t, std::string_view text) { heard += text; };
  const Generation done = run(model, {"abc"}, hooks)[0];
  EXPECT_EQ(heard, "");
  EXPECT_EQ(done.stopped, Stopped::stop_string);
  EXPECT_EQ(done.new_tokens, 3);
}

TEST_F(GenerateTest, WhatWaitedForAStopStringComesAtTheEnd) {
  Zaya model = tiny_model(text_config());
  always('x');
  options_.write.max_tokens = 4;
  options_.write.stops = {"xxxxxx"};
  EXPECT_EQ(run(model, {"abc"})[0].text, "xxxx");
}

TEST_F(GenerateTest, HalfACharacterIsNeverWritten) {
  Zaya model = tiny_model(text_config());
  always(0xe6);  // begins a character of three bytes that never comes to its end
  std::vector<std::string> pieces;
  GenerateHooks hooks;
  hooks.on_text = [&](size_t, std::string_view text) { pieces.emplace_back(text); };
  options_.write.max_tokens = 3;
  run(model, {"abc"}, hooks);
  for (const std::string& piece : pieces) EXPECT_EQ(piece.find('\xe6'), std::string::npos);
}

TEST_F(GenerateTest, TheContextIsTheLimit) {
  Zaya model = tiny_model(text_config(30));
  always('x');
  options_.write.max_tokens = 1000;
  const Generation done = run(model, {"abc"})[0];
  EXPECT_EQ(done.stopped, Stopped::context);
  EXPECT_EQ(done.prompt_tokens + done.new_tokens, 30);
  try {
    run(model, {"a", std::string(29, 'y')});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("prompt 2: wanted fewer tokens than the model's 30"));
  }
}

TEST_F(GenerateTest, AnInterruptionStopsEverythingAtOnce) {
  Zaya model = tiny_model(text_config());
  always('x');
  options_.batch = 2;
  int asked = 0;
  GenerateHooks hooks;
  hooks.interrupted = [&] { return ++asked > 12; };
  const auto results = run(model, {"a", "b", "c"}, hooks);
  EXPECT_EQ(results[0].stopped, Stopped::interrupted);
  EXPECT_EQ(results[0].text, std::string(static_cast<size_t>(results[0].new_tokens), 'x'));
  EXPECT_GT(results[0].new_tokens, 0);
  EXPECT_EQ(results[1].stopped, Stopped::interrupted);
  EXPECT_EQ(results[2].stopped, Stopped::not_yet);
}

TEST_F(GenerateTest, APromptNeedsAToken) {
  Zaya model = tiny_model(text_config());
  EXPECT_THROW(generate(ctx_, model, tokenizer_, {{}}, options_, {}), Error);
  EXPECT_TRUE(generate(ctx_, model, tokenizer_, {}, options_, {}).empty());
}

TEST_F(GenerateTest, AModelOfFewerTokensIsRefused) {
  Zaya model = tiny_model(tiny_config());
  EXPECT_THROW(run(model, {"a"}), Error);
}

}  // namespace
}  // namespace zaya
