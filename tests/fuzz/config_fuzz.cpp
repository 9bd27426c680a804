// A config.json: what is accepted is written and read again without a change.

#include "checkpoint/hf_config.h"
#include "fuzz/support.h"

namespace zaya::fuzz {
namespace {

std::string saved(const ModelConfig& config) {
  return json_text(hf_config_to_json(config, 1, -1, "bfloat16"));
}

void check_config_text(std::string_view text) {
  const ModelConfig config = hf_config_from_json(parse_json(text, "config.json"), "config.json");
  const std::string once = saved(config);
  FUZZ_CHECK_TEXT(saved(hf_config_from_json(parse_json(once, "saved"), "saved")) == once, once);
}

}  // namespace
}  // namespace zaya::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  zaya::fuzz::accepts([&] { zaya::fuzz::check_config_text(zaya::fuzz::as_text(data, size)); });
  return 0;
}
