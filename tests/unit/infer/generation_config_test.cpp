#include "infer/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "infer/chat_format.h"
#include "support/temp_folder.h"
#include "support/turn_tokenizer.h"

namespace zaya {
namespace {

using test::TurnTokenizer;
using testing::ElementsAre;
using testing::HasSubstr;

class ConfigFolder : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    write_quickly(folder_ / name, text);
  }
  GenerationConfig generation(const std::string& text) {
    write("generation_config.json", text);
    return read_generation_config(folder_.path());
  }
  std::string refusal(const std::string& text) {
    return error_of([&] { generation(text); });
  }
  TokenizerConfig tokenizer_config(const std::string& text) {
    write("tokenizer_config.json", text);
    return read_tokenizer_config(folder_.path());
  }
  SpecialIds special(const GenerationConfig& generation, const TokenizerConfig& config) {
    return special_ids(generation, config, tokenizer_, folder_.path());
  }
  TempFolder folder_;
  TurnTokenizer tokenizer_;
};

TEST_F(ConfigFolder, WithoutFilesNothingIsSaid) {
  const GenerationConfig config = read_generation_config(folder_.path());
  EXPECT_FALSE(config.temperature || config.do_sample || config.max_new_tokens);
  EXPECT_EQ(config.sampling().temperature, SamplingOptions().temperature);
  EXPECT_TRUE(read_tokenizer_config(folder_.path()).chat_template.empty());
  EXPECT_THAT(special(config, {}).eos, ElementsAre(TurnTokenizer::kEos));
}

TEST_F(ConfigFolder, SamplingIsTakenOver) {
  const GenerationConfig config = generation(
      R"({"temperature": 0.6, "top_k": 64, "top_p": 0.95, "min_p": 0.1, "repetition_penalty": 1.1,
          "max_new_tokens": 99, "do_sample": true, "transformers_version": [], "top_h": {}})");
  const SamplingOptions options = config.sampling();
  EXPECT_EQ(options.temperature, 0.6f);
  EXPECT_EQ(options.top_k, 64);
  EXPECT_EQ(options.top_p, 0.95f);
  EXPECT_EQ(options.min_p, 0.1f);
  EXPECT_EQ(options.repetition_penalty, 1.1f);
  EXPECT_EQ(config.max_new_tokens, 99);
}

TEST_F(ConfigFolder, DoSampleFalseIsGreedy) {
  EXPECT_EQ(generation(R"({"do_sample": false, "temperature": 0.6})").sampling().temperature, 0);
}

TEST_F(ConfigFolder, EosIsANumberOrAList) {
  EXPECT_THAT(generation(R"({"eos_token_id": 106})").eos_token_ids, ElementsAre(106));
  EXPECT_THAT(generation(R"({"eos_token_id": [1, 106]})").eos_token_ids, ElementsAre(1, 106));
  EXPECT_TRUE(generation(R"({"eos_token_id": null})").eos_token_ids.empty());
}

TEST_F(ConfigFolder, WrongMembersAreNamed) {
  EXPECT_THAT(refusal(R"({"top_p": 3})"),
              HasSubstr("generation_config.json: top_p: wanted more than 0 and at most 1, got 3"));
  EXPECT_THAT(refusal(R"({"top_k": "many"})"), HasSubstr("generation_config.json: top_k: wanted"));
  EXPECT_THAT(refusal(R"({"temperature": "0"})"), HasSubstr("temperature: wanted"));
  EXPECT_THAT(refusal(R"({"do_sample": 1})"), HasSubstr("do_sample: wanted"));
  EXPECT_THAT(refusal(R"({"eos_token_id": [-1]})"), HasSubstr("eos_token_id"));
  EXPECT_THAT(refusal(R"({"eos_token_id": "x"})"), HasSubstr("eos_token_id: wanted"));
  EXPECT_THAT(refusal(R"({"bos_token_id": 4294967296})"), HasSubstr("bos_token_id: wanted"));
  EXPECT_THAT(refusal(R"({"max_new_tokens": 0})"), HasSubstr("max_new_tokens: wanted"));
  EXPECT_THAT(refusal("[]"), HasSubstr("generation_config.json"));
  EXPECT_THAT(refusal("{"), HasSubstr("generation_config.json"));
}

TEST_F(ConfigFolder, NamesOfTokensAreTextsOrObjects) {
  EXPECT_EQ(tokenizer_config(R"({"bos_token": "<s>"})").bos_token, "<s>");
  const auto config = tokenizer_config(R"({"eos_token": {"content": "<eos>"}, "bos_token": null})");
  EXPECT_EQ(config.eos_token, "<eos>");
  EXPECT_THROW(tokenizer_config(R"({"eos_token": 3})"), Error);
  EXPECT_THROW(tokenizer_config(R"({"eos_token": {"text": "x"}})"), Error);
}

TEST_F(ConfigFolder, TheFirstThatSaysGivesTheIds) {
  const TokenizerConfig named = tokenizer_config(R"({"eos_token": "<end_of_turn>"})");
  EXPECT_THAT(special({}, named).eos, ElementsAre(TurnTokenizer::kEnd));
  EXPECT_THAT(special(generation(R"({"eos_token_id": [7, 8], "bos_token_id": 9})"), named).eos,
              ElementsAre(7, 8));
  EXPECT_EQ(special(generation(R"({"bos_token_id": 9})"), named).bos, 9);
  EXPECT_EQ(special({}, named).bos, TurnTokenizer::kBos);
  const TokenizerConfig unknown = tokenizer_config(R"({"eos_token": "<nothing>"})");
  EXPECT_THAT(special({}, unknown).eos, ElementsAre(TurnTokenizer::kEos));
}

TEST_F(ConfigFolder, TemplatesOfOtherFormatsAreNamed) {
  const std::string gemma =
      "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m.role }}\\n<end_of_turn>";
  EXPECT_EQ(template_warning({}), "");
  EXPECT_EQ(template_warning(tokenizer_config("{\"chat_template\": \"" + gemma + "\"}")), "");
  const auto other = tokenizer_config(R"({"chat_template": "<|im_start|>{{ role }}"})");
  EXPECT_THAT(template_warning(other), HasSubstr("tokenizer_config.json: chat_template writes"));
  const auto several = tokenizer_config(
      R"({"chat_template": [{"name": "tools", "template": "T"}, {"name": "default", "template": "D"}]})");
  EXPECT_EQ(several.chat_template, "D");
  write("chat_template.jinja", "[INST]");
  const auto jinja = read_tokenizer_config(folder_.path());
  EXPECT_THAT(template_warning(jinja), HasSubstr("chat_template.jinja writes"));
  EXPECT_THROW(tokenizer_config(R"({"chat_template": 5})"), Error);
}

}  // namespace
}  // namespace zaya
