#include "infer/generation_config.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"

namespace zaya {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{16} << 20;
constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();

template <class T, class Read>
std::optional<T> if_said(const JsonObject& object, std::string_view key, Read&& read) {
  if (!object.has(key)) return {};
  return static_cast<T>(read(key));
}

std::optional<float> number(const JsonObject& object, std::string_view key) {
  return if_said<float>(object, key, [&](auto k) { return object.number(k); });
}

// One id, or a list of them; empty when the member is absent.
std::vector<int32_t> token_ids(const JsonObject& object, std::string_view key) {
  const Json* const value = object.find(key);
  if (!value) return {};
  if (!value->is_array()) return {static_cast<int32_t>(object.integer(key, 0, kMaxId))};
  const std::vector<int64_t> ids = object.integers(key, 0, kMaxId);
  return {ids.begin(), ids.end()};
}

// A token in tokenizer_config.json: its text, or an object with the member content.
std::string token_text(const JsonObject& object, std::string_view key) {
  const Json* const value = object.find(key);
  if (!value) return {};
  if (value->is_object()) return object.object(key).string("content");
  if (!value->is_string()) object.fail_wanted(key, "a token's text, or an object with content");
  return object.string(key);
}

// A text, or a list of named ones.
std::string template_text(const JsonObject& object) {
  constexpr std::string_view kKey = "chat_template";
  const Json* const value = object.find(kKey);
  if (!value) return {};
  if (value->is_string()) return object.string(kKey);
  if (!value->is_array()) object.fail_wanted(kKey, "a text, or a list of named ones");
  std::string text;
  for (const Json& entry : *value) {
    const JsonObject named(entry, object.place() + ": chat_template");
    if (text.empty() || named.string("name") == "default") text = named.string("template");
  }
  return text;
}

std::optional<Json> parse_if_there(const fs::path& file) {
  if (!fs::exists(file)) return {};
  return parse_json_file(file, kMaxBytes);
}

}  // namespace

GenerationConfig read_generation_config(const fs::path& folder) {
  const fs::path file = folder / "generation_config.json";
  const std::optional<Json> json = parse_if_there(file);
  GenerationConfig config;
  if (!json) return config;
  const JsonObject object(*json, file.string());
  config.do_sample =
      if_said<bool>(object, "do_sample", [&](auto key) { return object.boolean(key); });
  config.temperature = number(object, "temperature");
  config.top_p = number(object, "top_p");
  config.min_p = number(object, "min_p");
  config.repetition_penalty = number(object, "repetition_penalty");
  config.top_k = if_said<int64_t>(object, "top_k", [&](auto key) { return object.integer(key); });
  config.max_new_tokens =
      if_said<int64_t>(object, "max_new_tokens", [&](auto key) { return object.integer(key, 1); });
  config.bos_token_id = if_said<int32_t>(object, "bos_token_id",
                                         [&](auto key) { return object.integer(key, 0, kMaxId); });
  config.eos_token_ids = token_ids(object, "eos_token_id");
  check_sampling(config.sampling(), [&](std::string_view field) {
    return fmt::format("{}: {}", file.string(), field);
  });
  return config;
}

SamplingOptions GenerationConfig::sampling(SamplingOptions options) const {
  if (temperature) options.temperature = *temperature;
  if (do_sample && !*do_sample) options.temperature = 0;
  if (top_k) options.top_k = *top_k;
  if (top_p) options.top_p = *top_p;
  if (min_p) options.min_p = *min_p;
  if (repetition_penalty) options.repetition_penalty = *repetition_penalty;
  return options;
}

TokenizerConfig read_tokenizer_config(const fs::path& folder) {
  const fs::path file = folder / "tokenizer_config.json";
  TokenizerConfig config;
  if (const std::optional<Json> json = parse_if_there(file)) {
    const JsonObject object(*json, file.string());
    config.bos_token = token_text(object, "bos_token");
    config.eos_token = token_text(object, "eos_token");
    config.chat_template = template_text(object);
    config.chat_template_place = file.string() + ": chat_template";
  }
  // Newer folders keep it in a file of its own, which then counts.
  const fs::path jinja = folder / "chat_template.jinja";
  if (fs::exists(jinja)) {
    config.chat_template = read_file(jinja, kMaxBytes);
    config.chat_template_place = jinja.string();
  }
  return config;
}

SpecialIds special_ids(const GenerationConfig& generation, const TokenizerConfig& config,
                       const Tokenizer& tokenizer, const fs::path& folder) {
  SpecialIds tokens;
  tokens.bos = generation.bos_token_id;
  if (!tokens.bos) tokens.bos = tokenizer.token_id(config.bos_token);
  if (!tokens.bos) tokens.bos = tokenizer.bos();
  tokens.eos = generation.eos_token_ids;
  if (!tokens.eos.empty()) return tokens;
  std::optional<int32_t> eos = tokenizer.token_id(config.eos_token);
  if (!eos) eos = tokenizer.eos();
  if (eos) {
    tokens.eos = {*eos};
  } else if (const auto json = parse_if_there(folder / "config.json")) {
    tokens.eos = token_ids(JsonObject(*json, (folder / "config.json").string()), "eos_token_id");
  }
  return tokens;
}

}  // namespace zaya
