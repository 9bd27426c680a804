#include "checkpoint/model_file.h"

#include <set>

#include "checkpoint/hf_config.h"
#include "checkpoint/original_config.h"

namespace zaya {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr const char* kQuantization = "quantization_config";

int read_bits(const JsonObject& json) {
  if (!json.has(kQuantization)) return 0;
  const JsonObject quantization = json.object(kQuantization);
  if (quantization.string("quant_method") != "zaya")
    quantization.fail_wanted("quant_method", "\"zaya\"");
  const int64_t bits = quantization.integer("bits");
  if (bits != 8 && bits != 4) quantization.fail_wanted("bits", "8 or 4");
  if (quantization.integer("group_size") != kQuantGroup)
    quantization.fail_wanted("group_size", fmt::format("{}", kQuantGroup));
  return static_cast<int>(bits);
}

Json layout_json(const ModelConfig& config, Layout layout) {
  return layout == Layout::current ? hf_config_to_json(config) : original_config_to_json(config);
}

// Fields that one of the readers looks at: their meaning is in the ModelConfig.
std::set<std::string> fields_understood() {
  const ModelConfig any;
  std::set<std::string> names{"zaya_layers",
                              "cca_num_q_heads",
                              "num_query_groups_list",
                              "ffn_hidden_size_list",
                              "swa_layers",
                              "rope_theta",
                              "rope_scaling",
                              "zaya_skip",
                              "partial_rotary_factor",
                              "auto_map",
                              kQuantization};
  for (const Json& json : {hf_config_to_json(any), original_config_to_json(any)})
    for (const auto& [name, value] : json.items()) names.insert(name);
  return names;
}

}  // namespace

ModelFile model_file_from_json(Json value, const std::string& place) {
  ModelFile file;
  const JsonObject json(value, place);
  file.form.bits = read_bits(json);
  if (is_original_config(json)) {
    file.form.layout = Layout::original;
    file.config = original_config_from_json(value, place);
    if (file.form.bits != 0) json.fail_wanted(kQuantization, "none in the original layout");
  } else {
    file.config = hf_config_from_json(value, place);
  }
  file.json = std::move(value);
  return file;
}

ModelFile read_model_file(const std::filesystem::path& config_json) {
  return model_file_from_json(parse_json_file(config_json, kMaxConfigBytes), config_json.string());
}

Json config_in_form(const ModelFile& source, const StoredForm& form) {
  Json json = layout_json(source.config, form.layout);
  const std::set<std::string> understood = fields_understood();
  for (const auto& [name, value] : source.json.items())
    if (!understood.contains(name)) json[name] = value;
  if (form.layout == Layout::original)
    // What the authors' code computes in fp32 only when told to.
    for (const char* flag : {"zaya_high_prec", "residual_in_fp32"})
      if (!json.contains(flag)) json[flag] = true;
  if (form.bits != 0)
    json[kQuantization] = {
        {"quant_method", "zaya"}, {"bits", form.bits}, {"group_size", kQuantGroup}};
  return json;
}

}  // namespace zaya
