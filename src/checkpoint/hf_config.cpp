#include "checkpoint/hf_config.h"

#include <algorithm>

#include "checkpoint/rotary_config.h"

namespace zaya {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 30;

void read_layer_types(const JsonObject& json, ModelConfig& c) {
  if (!json.has("layer_types")) {
    if (c.sliding_window > 0)
      json.fail_wanted("layer_types", "which blocks slide, sliding_window being set");
    return;
  }
  bool any = false;
  for (const std::string& type : json.strings("layer_types")) {
    if (type != "hybrid" && type != "hybrid_sliding")
      json.fail_wanted("layer_types", "\"hybrid\" or \"hybrid_sliding\" for every block");
    c.sliding_layers.push_back(type == "hybrid_sliding");
    any |= c.sliding_layers.back();
  }
  if (static_cast<int64_t>(c.sliding_layers.size()) != c.num_hidden_layers)
    json.fail_wanted("layer_types", fmt::format("{} entries, one a block", c.num_hidden_layers));
  if (!any) c.sliding_layers.clear();
}

void read_rotaries(const JsonObject& json, ModelConfig& c) {
  const int64_t sliding_count = std::count(c.sliding_layers.begin(), c.sliding_layers.end(), true);
  const bool slides = sliding_count > 0, full = sliding_count < c.num_hidden_layers;
  const Rotary of_full = read_rotary(json, "hybrid", full);
  const Rotary of_sliding = read_rotary(json, "hybrid_sliding", slides);
  if (slides && full && of_sliding.factor != of_full.factor)
    json.fail_wanted("rope_parameters", "one partial_rotary_factor for all layer types");
  c.rope_theta = of_full.theta;
  c.rope_theta_sliding = of_sliding.theta;
  c.partial_rotary_factor = static_cast<float>(full ? of_full.factor : of_sliding.factor);
}

// What this model family does one way only: a config that says otherwise would compute something
// else.
void refuse_variants(const JsonObject& json) {
  if (json.string_or("model_type", "zaya") != "zaya") json.fail_wanted("model_type", "\"zaya\"");
  if (json.string_or("hidden_act", "silu") != "silu") json.fail_wanted("hidden_act", "\"silu\"");
  refuse_rope_scaling(json);
  if (json.integer_or("num_experts_per_tok", 1) != 1) json.fail_wanted("num_experts_per_tok", "1");
  for (const char* flag : {"attention_bias", "lm_head_bias"})
    if (json.boolean_or(flag, false)) json.fail_wanted(flag, "false");
}

Json rotary_json(double theta, double factor) {
  return {{"rope_type", "default"}, {"rope_theta", theta}, {"partial_rotary_factor", factor}};
}

}  // namespace

double shortest(float value) { return std::stod(fmt::format("{}", value)); }

Skip read_skip(const JsonObject& json, Skip fallback) {
  const std::string skip = json.string_or("zaya_skip", fallback == Skip::pass ? "pass" : "zero");
  if (skip != "pass" && skip != "zero") json.fail_wanted("zaya_skip", "\"zero\" or \"pass\"");
  return skip == "pass" ? Skip::pass : Skip::zero;
}

ModelConfig hf_config_from_json(const Json& value, const std::string& place) {
  const JsonObject json(value, place);
  refuse_variants(json);
  ModelConfig c;
  c.vocab_size = json.integer("vocab_size", 1, kMaxSize);
  c.hidden_size = json.integer("hidden_size", 1, kMaxSize);
  c.num_hidden_layers = json.integer("num_hidden_layers", 1, kMaxSize);
  c.num_attention_heads = json.integer("num_attention_heads", 1, kMaxSize);
  c.num_key_value_heads = json.integer("num_key_value_heads", 1, kMaxSize);
  c.head_dim = json.integer("head_dim", 1, kMaxSize);
  c.cca_time0 = json.integer_or("cca_time0", c.cca_time0, 1, kMaxSize);
  c.cca_time1 = json.integer_or("cca_time1", c.cca_time1, 1, kMaxSize);
  c.num_experts = json.integer("num_experts", 1, kMaxSize);
  c.moe_intermediate_size = json.integer("moe_intermediate_size", 1, kMaxSize);
  c.router_hidden_size = json.integer("router_hidden_size", 1, kMaxSize);
  c.rms_norm_eps = static_cast<float>(json.number_or("rms_norm_eps", 1e-5));
  c.tie_word_embeddings = json.boolean_or("tie_word_embeddings", true);
  c.max_position_embeddings =
      json.integer_or("max_position_embeddings", c.max_position_embeddings, 1, kMaxSize);
  c.initializer_range = static_cast<float>(json.number_or("initializer_range", 0.02));
  c.sliding_window = json.integer_or("sliding_window", 0, 0, kMaxSize);
  c.skip = read_skip(json, Skip::zero);
  read_layer_types(json, c);
  read_rotaries(json, c);
  check_config(c, place);
  return c;
}

Json hf_config_to_json(const ModelConfig& c) {
  const double factor = shortest(c.partial_rotary_factor);
  Json layer_types = Json::array();
  for (int64_t block = 0; block < c.num_hidden_layers; ++block)
    layer_types.push_back(c.slides(block) ? "hybrid_sliding" : "hybrid");
  Json json = {
      {"architectures", {"ZayaForCausalLM"}},
      {"model_type", "zaya"},
      {"vocab_size", c.vocab_size},
      {"hidden_size", c.hidden_size},
      {"num_hidden_layers", c.num_hidden_layers},
      {"num_attention_heads", c.num_attention_heads},
      {"num_key_value_heads", c.num_key_value_heads},
      {"head_dim", c.head_dim},
      {"moe_intermediate_size", c.moe_intermediate_size},
      {"num_experts", c.num_experts},
      {"num_experts_per_tok", 1},
      {"router_hidden_size", c.router_hidden_size},
      {"cca_time0", c.cca_time0},
      {"cca_time1", c.cca_time1},
      {"rms_norm_eps", shortest(c.rms_norm_eps)},
      {"hidden_act", "silu"},
      {"max_position_embeddings", c.max_position_embeddings},
      {"initializer_range", shortest(c.initializer_range)},
      {"tie_word_embeddings", c.tie_word_embeddings},
      {"attention_bias", false},
      {"lm_head_bias", false},
      {"sliding_window", c.sliding_window > 0 ? Json(c.sliding_window) : Json()},
      {"layer_types", layer_types},
      {"rope_parameters",
       {{"hybrid", rotary_json(c.rope_theta, factor)},
        {"hybrid_sliding", rotary_json(c.rope_theta_sliding, factor)}}},
  };
  if (c.skip == Skip::pass) json["zaya_skip"] = "pass";
  return json;
}

Json hf_config_to_json(const ModelConfig& c, int64_t bos_token_id, int64_t eos_token_id,
                       std::string_view dtype) {
  const auto token = [](int64_t id) { return id >= 0 ? Json(id) : Json(); };
  Json json = hf_config_to_json(c);
  json["attention_dropout"] = 0.0;
  json["pad_token_id"] = 0;
  json["bos_token_id"] = token(bos_token_id);
  json["eos_token_id"] = token(eos_token_id);
  json["dtype"] = dtype;
  return json;
}

}  // namespace zaya
