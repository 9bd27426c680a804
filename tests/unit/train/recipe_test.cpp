#include "train/recipe.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "unit/train/small_recipe.h"

namespace zaya {
namespace {

using test::kSmallRecipe;
using test::refusal;
using test::refusal_of_text;
using test::small_recipe;
using test::small_recipe_with;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Recipe, AMessageNamesFilePathWantedGotAndLine) {
  EXPECT_EQ(refusal_of_text(small_recipe_with("seq_len = 256", "seq_len = 100")),
            "small.toml: phases[1].seq_len: wanted a multiple of 64, got 100 (line 31)");
}

TEST(Recipe, AnOverrideIsNamedAsTheSource) {
  EXPECT_EQ(refusal({"phases[1].seq_len=100"}),
            "small.toml: phases[1].seq_len: wanted a multiple of 64, got 100 (from --set)");
}

TEST(Recipe, UnknownKeysAreRefusedWithTheKnownOnes) {
  const std::string message = refusal({"optimizer.muon_lr=1"});
  EXPECT_NE(message.find("optimizer.muon_lr: wanted one of muon_learning_rate"), std::string::npos)
      << message;
  EXPECT_NE(refusal({"modell.vocab_size=5"}).find("modell: wanted one of"), std::string::npos);
}

TEST(Recipe, WrongTypesAreRefused) {
  EXPECT_EQ(refusal_of_text(small_recipe_with("steps = 10", "steps = \"ten\"")),
            "small.toml: phases[1].steps: wanted an integer, got \"ten\" (line 30)");
  EXPECT_EQ(refusal_of_text(small_recipe_with("weight = 3", "weight = true")),
            "small.toml: data[0].weight: wanted a number, got true (line 19)");
  EXPECT_EQ(refusal_of_text(small_recipe_with("[tokenizer]\npath = \"byte\"", "[[tokenizer]]")),
            "small.toml: tokenizer: wanted a table, got an array (line 14)");
  EXPECT_EQ(refusal({"metrics.tensorboard=1"}),
            "small.toml: metrics.tensorboard: wanted true or false, got 1 (from --set)");
  EXPECT_EQ(refusal({"dtype=f16"}),
            "small.toml: dtype: wanted auto, f32 or bf16, got \"f16\" (from --set)");
  EXPECT_EQ(refusal({"optimizer.clip_norm=nan"}),
            "small.toml: optimizer.clip_norm: wanted a finite number, got nan (from --set)");
  EXPECT_EQ(refusal({"seed=-1"}),
            "small.toml: seed: wanted 0 to 9223372036854775807, got -1 (from --set)");
}

TEST(Recipe, WhatHasNoDefaultMustBeGiven) {
  EXPECT_EQ(refusal_of_text(small_recipe_with("head_dim = 16\n", "")),
            "small.toml: model.head_dim: wanted at least 1, got nothing");
  EXPECT_EQ(refusal_of_text(small_recipe_with("[tokenizer]\npath = \"byte\"", "")),
            "small.toml: tokenizer.path: wanted something, got nothing");
  EXPECT_EQ(refusal_of_text("[model]"),
            "small.toml: model.vocab_size: wanted at least 2, got nothing");
}

TEST(Recipe, AnIntegerMayBeWrittenAsAFloatWithAnIntegersValue) {
  EXPECT_EQ(small_recipe({"phases[0].tokens=1e9"}).phases[0].tokens, 1000000000);
  EXPECT_NE(refusal({"phases[0].tokens=1.5"}).find("wanted an integer, got 1.5"),
            std::string::npos);
}

TEST(Recipe, ContradictionsAreRefused) {
  const auto refused = [](const std::vector<std::string>& overrides, const std::string& wanted) {
    const std::string message = refusal(overrides);
    EXPECT_NE(message.find(wanted), std::string::npos) << "message: " << message;
  };
  refused({"phases[0].steps=5"}, "phases[0].tokens: wanted one of tokens and steps, got both");
  refused({"phases[1].steps=0"}, "phases[1].tokens: wanted one of tokens and steps, got neither");
  refused({"phases[0].seq_len=1024"},
          "phases[0].seq_len: wanted at most model.max_position_embeddings (512), got 1024");
  refused({"phases[0].batch_tokens=1000"},
          "phases[0].batch_tokens: wanted a multiple of seq_len (128), got 1000");
  refused({"phases[0].micro_batch_tokens=64"},
          "phases[0].micro_batch_tokens: wanted a multiple of seq_len (128), got 64");
  refused({"phases[0].batch_tokens_start=256"},
          "phases[0].ramp_tokens: wanted batch_tokens_start and ramp_tokens together");
  refused({"phases[0].ramp_tokens=256"},
          "phases[0].batch_tokens_start: wanted batch_tokens_start and ramp_tokens together");
  refused({"phases[0].batch_tokens_start=2048", "phases[0].ramp_tokens=4096"},
          "phases[0].batch_tokens_start: wanted a multiple of seq_len (128), at most batch_tokens "
          "(1024), got 2048");
  refused({"phases[0].batch_tokens_start=256", "phases[0].ramp_tokens=65537"},
          "phases[0].ramp_tokens: wanted at most the phase's tokens (65536), got 65537");
  refused({"phases[0].mixture={ books = 1 }"},
          "phases[0].mixture: wanted names of data sources (web, code), got \"books\"");
  refused({"phases[0].mixture={ web = 0 }"}, "phases[0].mixture: wanted a weight more than 0");
  refused({"data[1].name=web"}, "data[1].name: wanted a name that no other has, got \"web\" again");
  refused({"data[0].holdout_every=20"},
          "data[0].holdout_every: wanted 0 where validation.every is 0, got 20");
  refused({"data[0].holdout_every=1"}, "data[0].holdout_every: wanted 0 or at least 2, got 1");
  refused({"validation.every=10"}, "validation.every: wanted [[validation.sources]] or");
  refused({"optimizer.warmup_steps=5", "optimizer.warmup_tokens=5"},
          "optimizer.warmup_tokens: wanted one of warmup_steps and warmup_tokens, got both");
  refused({"optimizer.warmup_steps=75"},
          "optimizer.warmup_steps: wanted a warm-up within the 74 steps of its phases, got 75");
  refused({"optimizer.warmup_tokens=1e9"}, "optimizer.warmup_tokens: wanted a warm-up within");
  refused({"model.num_key_value_heads=3"}, "model: num_key_value_heads: wanted a divisor");
  refused({"model.sliding_layers=[true, false, true]", "model.sliding_window=8"},
          "model.sliding_layers: wanted a length that divides num_hidden_layers (2), got 3");
}

TEST(Recipe, ValidationSourcesWithoutValidationAreRefused) {
  const std::string text =
      std::string(kSmallRecipe) + "[[validation.sources]]\nname = \"v\"\npath = \"v\"\n";
  EXPECT_NE(refusal_of_text(text).find("validation.every: wanted at least 1"), std::string::npos);
}

TEST(Recipe, TextThatIsNotTomlIsRefusedWithItsLine) {
  EXPECT_NE(refusal_of_text("a = 1\nb = = 2\n").find("small.toml: line 2: wanted TOML"),
            std::string::npos);
}

TEST(Recipe, AMissingFileIsRefusedWithItsPath) {
  try {
    load_recipe("/nowhere/recipe.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot open /nowhere/recipe.toml: No such file or directory");
  }
}

TEST(Recipe, AFolderInPlaceOfAFileIsRefused) { EXPECT_THROW(load_recipe("/tmp"), Error); }

TEST(Recipe, WhatDependsOnOtherFieldsIsFilledIn) {
  const Recipe recipe = small_recipe({"model.sliding_layers=[true]", "model.sliding_window=8"});
  EXPECT_EQ(recipe.phases[0].rotary_base, recipe.model.rope_theta);
  EXPECT_EQ(recipe.phases[0].micro_batch_tokens, 1024);
  EXPECT_EQ(recipe.phases[0].mixture, (fields::NumberMap{{"code", 1}, {"web", 3}}));
  EXPECT_EQ(recipe.model.sliding_layers, std::vector<bool>({true, true}));
}

TEST(Recipe, PathsStayAsWrittenRelativeToTheCurrentDirectory) {
  EXPECT_EQ(small_recipe().data[0].path, "data/web");
}

TEST(Recipe, TheResolvedTextReadsBackToTheSameRecipe) {
  const std::vector<std::string> overrides = {"seed=7",
                                              "name=a \"quoted\"\\ name",
                                              "optimizer.adamw_eps=1e-8",
                                              "model.rms_norm_eps=1e-5",
                                              "model.sliding_layers=[true, false]",
                                              "model.sliding_window=8",
                                              "data[0].holdout_every=9",
                                              "validation.every=3",
                                              "phases[0].mixture={ web = 0.3 }"};
  const std::string text = recipe_text(small_recipe(overrides));
  const Recipe again = parse_recipe(text, "resolved.toml");
  EXPECT_EQ(recipe_text(again), text);
  EXPECT_EQ(again.name, "a \"quoted\"\\ name");
  EXPECT_EQ(recipe_json(again), recipe_json(small_recipe(overrides)));
}

TEST(Recipe, OnlyChangesOfTheNumbersCountAsChanges) {
  const std::string before = recipe_json(small_recipe());
  EXPECT_TRUE(recipe_changes(before, recipe_json(small_recipe(
                                         {"threads=2", "max_steps=9", "checkpoint.keep=5"})))
                  .empty());
  EXPECT_EQ(recipe_changes(
                before, recipe_json(small_recipe({"optimizer.clip_norm=2", "phases[1].steps=11"}))),
            (std::vector<std::string>{"phases[1].steps: 10 became 11",
                                      "optimizer.clip_norm: 1.0 became 2.0"}));
}

TEST(Recipe, TheRecipesOfThisProjectAreWhole) {
  for (const char* name : {"quickstart", "bench-small", "zaya1-base"})
    EXPECT_EQ(load_recipe(std::string(ZAYA_SOURCE_DIR "/recipes/") + name + ".toml").name, name);
}

TEST(RecipeDocs, DocsRecipeMdIsUpToDate) {
  const std::string path = ZAYA_SOURCE_DIR "/docs/recipe.md";
  const std::string marker = "<!-- generated from src/train/recipe_fields.h: -->\n";
  const std::string text = read_text(path);
  const size_t at = text.find(marker);
  ASSERT_NE(at, std::string::npos);
  const std::string wanted = text.substr(0, at + marker.size()) + "\n" + recipe_docs();
  if (std::getenv("ZAYA_REFRESH_DOCS") != nullptr) std::ofstream(path) << wanted;
  EXPECT_TRUE(read_text(path) == wanted)
      << "docs/recipe.md is out of date. Refresh it with: ZAYA_REFRESH_DOCS=1 "
         "<build>/tests/unit_train --gtest_filter=RecipeDocs.*";
}

}  // namespace
}  // namespace zaya
