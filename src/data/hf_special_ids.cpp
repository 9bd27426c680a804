#include "data/hf_special_ids.h"

#include <span>

#include "core/json.h"

namespace zaya {
namespace {

constexpr std::string_view kBosNames[] = {"<bos>", "<s>", "<|begin_of_text|>",
                                          "<\uff5cbegin\u2581of\u2581sentence\uff5c>"};
constexpr std::string_view kEosNames[] = {
    "<eos>", "</s>", "<|end_of_text|>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<|endoftext|>"};

std::optional<int32_t> usual_id(std::span<const std::string_view> names,
                                const HfAddedTokens& added) {
  for (const std::string_view name : names) {
    const HfAddedToken* token = added.find(name);
    if (token && token->special) return token->id;
  }
  return std::nullopt;
}

// The content of "name" or {"content": "name"}.
std::string content_of(const JsonObject& config, const char* key) {
  const Json* value = config.find(key);
  return value->is_object() ? config.object(key).string("content") : config.string(key);
}

}  // namespace

HfSpecialIds find_special_ids(
    const HfConfigFile& config, const HfPostProcessor& post_processor, const HfAddedTokens& added,
    const std::function<std::optional<int32_t>(std::string_view)>& id_of) {
  HfSpecialIds ids;
  ids.bos = post_processor.before().empty() ? usual_id(kBosNames, added)
                                            : std::optional(post_processor.before().front());
  ids.eos = post_processor.after().empty() ? usual_id(kEosNames, added)
                                           : std::optional(post_processor.after().back());
  if (config.bytes.empty()) return ids;
  const Json document = parse_json(config.bytes, config.place);
  const JsonObject object(document, config.place);
  const auto read = [&](const char* key, std::optional<int32_t>& id) {
    if (!document.contains(key)) return;
    id = object.has(key) ? id_of(content_of(object, key)) : std::nullopt;
    if (object.has(key) && !id) object.fail_wanted(key, "the content of a token");
  };
  read("bos_token", ids.bos);
  read("eos_token", ids.eos);
  return ids;
}

}  // namespace zaya
