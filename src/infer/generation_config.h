#pragma once
// What a model's folder says about how it wants to be run: generation_config.json (sampling, ids),
// tokenizer_config.json (the names of bos and eos, the chat template) and chat_template.jinja. All
// may be absent, and so may each member. Unknown members are ignored; what is read is checked:
// "generation_config.json: top_p: wanted more than 0 and at most 1, got 3".

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "infer/sampler.h"

namespace zaya {

struct GenerationConfig {
  std::optional<bool> do_sample;  // false: the likeliest token, unless a person gives a temperature
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k, max_new_tokens;
  std::optional<int32_t> bos_token_id;
  std::vector<int32_t> eos_token_ids;  // a number or a list of them in the file

  // Over the defaults, what the file says.
  SamplingOptions sampling(SamplingOptions defaults = {}) const;
};
GenerationConfig read_generation_config(const std::filesystem::path& folder);

struct TokenizerConfig {
  std::string bos_token, eos_token;  // how they are spelt; empty: not said
  // A template named "default", where there are several. Empty: none.
  std::string chat_template;
  std::string chat_template_place;  // "FILE" or "FILE: chat_template"
};
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder);

struct SpecialIds {
  std::optional<int32_t> bos;
  std::vector<int32_t> eos;
};
// The first that says: generation_config.json, tokenizer_config.json, the tokenizer, config.json.
SpecialIds special_ids(const GenerationConfig& generation, const TokenizerConfig& config,
                       const Tokenizer& tokenizer, const std::filesystem::path& folder);

}  // namespace zaya
