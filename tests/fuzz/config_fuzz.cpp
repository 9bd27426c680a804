// A config.json of either layout: what is accepted is written and read again without a change.

#include "checkpoint/hf_config.h"
#include "checkpoint/original_config.h"
#include "fuzz/support.h"

namespace zaya::fuzz {
namespace {

std::string saved(const ModelConfig& config, bool original) {
  return json_text(original ? original_config_to_json(config) : hf_config_to_json(config));
}

void check_config_text(std::string_view text) {
  const Json json = parse_json(text, "config.json");
  const bool original = is_original_config(JsonObject(json, "config.json"));
  const auto read = original ? original_config_from_json : hf_config_from_json;
  const std::string once = saved(read(json, "config.json"), original);
  FUZZ_CHECK_TEXT(saved(read(parse_json(once, "saved"), "saved"), original) == once, once);
}

}  // namespace
}  // namespace zaya::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  zaya::fuzz::accepts([&] { zaya::fuzz::check_config_text(zaya::fuzz::as_text(data, size)); });
  return 0;
}
