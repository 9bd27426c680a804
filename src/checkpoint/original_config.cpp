#include "checkpoint/original_config.h"

#include "checkpoint/hf_config.h"
#include "checkpoint/original_layers.h"
#include "checkpoint/rotary_config.h"

namespace zaya {
namespace {

constexpr int64_t kMaxSize = kMaxOriginalSize;
constexpr double kRotaryFactor = 0.5;  // the authors' default

// rope_theta stands at the top, or in rope_parameters where a newer HF has moved it; a bare
// rope_type may be left over there.
void read_rotary_fields(const JsonObject& json, ModelConfig& c) {
  refuse_rope_scaling(json);
  Rotary rotary;
  if (json.has("rope_theta")) {
    rotary = {json.number("rope_theta"), json.number_or("partial_rotary_factor", kRotaryFactor)};
    if (json.has("rope_parameters")) {
      const JsonObject inner = json.object("rope_parameters");
      if (inner.string_or("rope_type", "default") != "default")
        inner.fail_wanted("rope_type", "\"default\"");
      if (inner.number_or("rope_theta", rotary.theta) != rotary.theta)
        inner.fail_wanted("rope_theta", fmt::format("{} as at the top", rotary.theta));
      if (inner.number_or("partial_rotary_factor", rotary.factor) != rotary.factor)
        inner.fail_wanted("partial_rotary_factor", fmt::format("{} as at the top", rotary.factor));
    }
  } else {
    const double factor = json.number_or("partial_rotary_factor", kRotaryFactor);
    rotary = read_rotary(json, "hybrid", true, &factor);
  }
  c.rope_theta = rotary.theta;
  c.partial_rotary_factor = static_cast<float>(rotary.factor);
  if (json.has("swa_rotary_base"))
    c.rope_theta_sliding = json.number("swa_rotary_base");
  else if (c.sliding_window > 0)
    json.fail_wanted("swa_rotary_base", "the rotary base of the sliding layers");
}

// What this model family does one way only.
void refuse_variants(const JsonObject& json) {
  for (const char* key : {"moe_intermediate_size", "router_hidden_size"})
    if (json.has(key))
      json.fail_wanted(key, "none, the other fields being those of the original layout");
  const auto require_text = [&](const char* key, const char* wanted) {
    if (json.string_or(key, wanted) != wanted) json.fail_wanted(key, json_quoted(wanted));
  };
  require_text("model_type", "zaya");
  require_text("activation_func", "swiglu");
  require_text("normalization", "RMSNorm");
  for (const char* key :
       {"cca", "gated_linear_unit", "zaya_use_mod", "zaya_use_eda", "scale_residual_merge"})
    if (!json.boolean_or(key, true)) json.fail_wanted(key, "true");
  for (const char* key : {"add_bias_linear", "attention_bias", "lm_head_bias", "clamp_temp"})
    if (json.boolean_or(key, false)) json.fail_wanted(key, "false");
  if (json.integer_or("moe_router_topk", 1) != 1) json.fail_wanted("moe_router_topk", "1");
}

int64_t read_layer_count(const JsonObject& json) {
  const int64_t layers = json.integer("num_hidden_layers", 2, kMaxSize);
  if (layers % 2 != 0)
    json.fail_wanted("num_hidden_layers", "an even number (attention and experts by turns)");
  return layers;
}

}  // namespace

bool is_original_config(const JsonObject& json) {
  for (const char* key :
       {"zaya_layers", "zaya_mlp_expansion", "ffn_hidden_size", "ffn_hidden_size_list"})
    if (json.has(key)) return true;
  return false;
}

ModelConfig original_config_from_json(const Json& value, const std::string& place) {
  const JsonObject json(value, place);
  refuse_variants(json);
  ModelConfig c;
  c.vocab_size = json.integer("vocab_size", 1, kMaxSize);
  c.hidden_size = json.integer("hidden_size", 1, kMaxSize);
  const int64_t layers = read_layer_count(json);
  c.num_hidden_layers = layers / 2;
  read_layer_sizes(json, layers, c);
  c.cca_time0 = json.integer_or("cca_time0", c.cca_time0, 1, kMaxSize);
  c.cca_time1 = json.integer_or("cca_time1", c.cca_time1, 1, kMaxSize);
  c.rms_norm_eps = static_cast<float>(json.number_or("norm_epsilon", 1e-5));
  c.tie_word_embeddings = json.boolean_or("tie_word_embeddings", true);
  c.max_position_embeddings =
      json.integer_or("max_position_embeddings", c.max_position_embeddings, 1, kMaxSize);
  c.initializer_range = static_cast<float>(json.number_or("initializer_range", 0.02));
  c.skip = read_skip(json, Skip::pass);
  read_layer_windows(json, layers, c);
  read_rotary_fields(json, c);
  check_config(c, place);
  return c;
}

Json original_config_to_json(const ModelConfig& c) {
  Json json = {
      {"architectures", {"ZayaForCausalLM"}},
      {"model_type", "zaya"},
      {"cca", true},
      {"vocab_size", c.vocab_size},
      {"hidden_size", c.hidden_size},
      {"num_hidden_layers", 2 * c.num_hidden_layers},
      {"num_attention_heads", c.num_attention_heads},
      {"num_query_groups", c.num_key_value_heads},
      {"num_key_value_heads", c.num_key_value_heads},
      {"head_dim", c.head_dim},
      {"kv_channels", c.head_dim},
      {"num_experts", c.num_experts},
      {"moe_router_topk", 1},
      {"ffn_hidden_size", 2 * c.moe_intermediate_size},
      {"zaya_mlp_expansion", c.router_hidden_size},
      {"cca_time0", c.cca_time0},
      {"cca_time1", c.cca_time1},
      {"norm_epsilon", shortest(c.rms_norm_eps)},
      {"normalization", "RMSNorm"},
      {"activation_func", "swiglu"},
      {"gated_linear_unit", true},
      {"zaya_use_mod", true},
      {"zaya_use_eda", true},
      {"scale_residual_merge", true},
      {"add_bias_linear", false},
      {"attention_bias", false},
      {"lm_head_bias", false},
      {"clamp_temp", false},
      {"tie_word_embeddings", c.tie_word_embeddings},
      {"max_position_embeddings", c.max_position_embeddings},
      {"initializer_range", shortest(c.initializer_range)},
      {"rope_theta", c.rope_theta},
      {"partial_rotary_factor", shortest(c.partial_rotary_factor)},
      {"rope_scaling", false},
      {"sliding_window", Json()},
      {"swa_rotary_base", c.rope_theta_sliding},
  };
  if (!c.sliding_layers.empty()) {
    if (c.sliding_window == 1)
      fail(
          "sliding_window: wanted at least 2 for the original layout (swa_layers counts the tokens "
          "before the present one, and 0 means all), got 1");
    Json windows = Json::array();
    for (int64_t block = 0; block < c.num_hidden_layers; ++block) {
      windows.push_back(c.slides(block) ? c.sliding_window - 1 : 0);
      windows.push_back(0);
    }
    json["swa_layers"] = std::move(windows);
  }
  if (c.skip == Skip::zero) json["zaya_skip"] = "zero";
  return json;
}

}  // namespace zaya
