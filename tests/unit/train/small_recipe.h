#pragma once
// A recipe that is whole and small, for tests to change in one place.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "train/recipe.h"

namespace zaya::test {

inline constexpr const char* kSmallRecipe = R"(
name = "small"
[model]
vocab_size = 320
hidden_size = 64
num_hidden_layers = 2
num_attention_heads = 4
num_key_value_heads = 2
head_dim = 16
num_experts = 4
moe_intermediate_size = 64
router_hidden_size = 16
max_position_embeddings = 512
[tokenizer]
path = "byte"
[[data]]
name = "web"
path = "data/web"
weight = 3
[[data]]
name = "code"
path = "data/code"
[[phases]]
name = "first"
tokens = 65536
seq_len = 128
batch_tokens = 1024
[[phases]]
name = "second"
steps = 10
seq_len = 256
batch_tokens = 2048
)";

inline Recipe small_recipe(const std::vector<std::string>& overrides = {}) {
  return parse_recipe(kSmallRecipe, "small.toml", overrides);
}

// The message of the Error that the overrides lead to; empty when there is none.
inline std::string refusal(const std::vector<std::string>& overrides) {
  try {
    small_recipe(overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline std::string refusal_of_text(const std::string& text) {
  try {
    parse_recipe(text, "small.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// kSmallRecipe with one piece of text replaced.
inline std::string small_recipe_with(const std::string& old_text, const std::string& new_text) {
  std::string text = kSmallRecipe;
  const size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return at == std::string::npos ? text : text.replace(at, old_text.size(), new_text);
}

}  // namespace zaya::test
