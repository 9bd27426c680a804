#include "checkpoint/original_layers.h"

namespace zaya {
namespace {

constexpr int64_t kMaxSize = kMaxOriginalSize;

// Entries of `key`, one a layer.
const Json& layer_list(const JsonObject& json, const char* key, int64_t layers) {
  const Json& list = json.array(key);
  if (static_cast<int64_t>(list.size()) != layers)
    fail("{}: {}: wanted {} entries, one a layer (num_hidden_layers), got {}", json.place(), key,
         layers, list.size());
  return list;
}

// An entry of a list as an integer from `low` on.
int64_t entry(const JsonObject& json, const char* key, int64_t layer, int64_t low) {
  const Json& value = json.value()[key][static_cast<size_t>(layer)];
  const bool fits = value.is_number_integer() && value <= kMaxSize && value >= low;
  if (!fits)
    fail("{}: {}[{}]: wanted an integer from {} to {}, got {}", json.place(), key, layer, low,
         kMaxSize, json_text(value).substr(0, 80));
  return value.get<int64_t>();
}

// The one value that a list holds for all attention layers (even ones) or all experts layers (odd
// ones); the others hold 0, or in zaya_layers "a".
int64_t uniform(const JsonObject& json, const char* key, int64_t layers, bool attention) {
  const Json& list = layer_list(json, key, layers);
  const int64_t first = attention ? 0 : 1;
  const int64_t value = entry(json, key, first, 1);
  for (int64_t layer = 0; layer < layers; ++layer) {
    const bool here = layer % 2 == first;
    const Json& found = list[static_cast<size_t>(layer)];
    if (here && entry(json, key, layer, 1) != value)
      fail("{}: {}[{}]: wanted {} as in layer {} (all blocks are alike), got {}", json.place(), key,
           layer, value, first, json_text(found));
    if (!here && found != Json(0) && found != Json("a") && !found.is_null())
      fail("{}: {}[{}]: wanted 0 in {} layer, got {}", json.place(), key, layer,
           attention ? "an experts" : "an attention", json_text(found).substr(0, 80));
  }
  return value;
}

// A fact that the other dialect's field may repeat but not deny.
void require_agreement(const JsonObject& json, const char* key, int64_t value,
                       std::string_view source) {
  if (json.has(key) && json.integer(key, 0, kMaxSize) != value)
    json.fail_wanted(key, fmt::format("{}, as {} says", value, source));
}

int64_t read_heads(const JsonObject& json, const ModelConfig& c) {
  const int64_t heads = json.integer("num_attention_heads", 1, kMaxSize);
  if (c.hidden_size % heads != 0)
    json.fail_wanted("num_attention_heads",
                     fmt::format("a divisor of hidden_size ({})", c.hidden_size));
  return heads;
}

void read_lists(const JsonObject& json, int64_t layers, ModelConfig& c) {
  c.num_experts = uniform(json, "zaya_layers", layers, false);
  for (int64_t layer = 0; layer < layers; layer += 2)
    if (json.value()["zaya_layers"][static_cast<size_t>(layer)] != Json("a"))
      fail("{}: zaya_layers[{}]: wanted \"a\" in every even layer, got {}", json.place(), layer,
           json_text(json.value()["zaya_layers"][static_cast<size_t>(layer)]).substr(0, 80));
  require_agreement(json, "num_experts", c.num_experts, "zaya_layers");
  c.head_dim = c.hidden_size / read_heads(json, c);
  require_agreement(json, "head_dim", c.head_dim, "hidden_size / num_attention_heads");
  c.num_attention_heads = uniform(json, "cca_num_q_heads", layers, true);
  c.num_key_value_heads = uniform(json, "num_query_groups_list", layers, true);
  require_agreement(json, "num_query_groups", c.num_key_value_heads, "num_query_groups_list");
  c.moe_intermediate_size = uniform(json, "ffn_hidden_size_list", layers, false);
  require_agreement(json, "ffn_hidden_size", c.moe_intermediate_size, "ffn_hidden_size_list");
}

void read_scalars(const JsonObject& json, ModelConfig& c) {
  for (const char* list : {"cca_num_q_heads", "num_query_groups_list", "ffn_hidden_size_list"})
    if (json.has(list)) json.fail_wanted("zaya_layers", fmt::format("a list beside {}", list));
  c.num_experts = json.integer("num_experts", 1, kMaxSize);
  c.num_attention_heads = json.integer("num_attention_heads", 1, kMaxSize);
  c.head_dim = json.integer("head_dim", 1, kMaxSize);
  const bool groups = json.has("num_query_groups");
  c.num_key_value_heads =
      json.integer(groups ? "num_query_groups" : "num_key_value_heads", 1, kMaxSize);
  c.moe_intermediate_size = json.integer("ffn_hidden_size", 1, kMaxSize);
}

}  // namespace

void read_layer_sizes(const JsonObject& json, int64_t layers, ModelConfig& c) {
  const bool lists = json.has("zaya_layers");
  lists ? read_lists(json, layers, c) : read_scalars(json, c);
  require_agreement(json, "num_key_value_heads", c.num_key_value_heads,
                    lists ? "num_query_groups_list" : "num_query_groups");
  require_agreement(json, "kv_channels", c.head_dim, "the size of a head");
  if (c.moe_intermediate_size % 2 != 0)
    json.fail_wanted(lists ? "ffn_hidden_size_list" : "ffn_hidden_size",
                     "an even number (gate and up rows)");
  c.moe_intermediate_size /= 2;
  const Json* router = json.find("zaya_mlp_expansion");
  c.router_hidden_size = router && router->is_array()
                             ? uniform(json, "zaya_mlp_expansion", layers, false)
                             : json.integer("zaya_mlp_expansion", 1, kMaxSize);
}

void read_layer_windows(const JsonObject& json, int64_t layers, ModelConfig& c) {
  if (json.has("sliding_window")) json.fail_wanted("sliding_window", "null (swa_layers says it)");
  if (!json.has("swa_layers")) return;
  layer_list(json, "swa_layers", layers);
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t before = entry(json, "swa_layers", layer, 0);
    if (layer % 2 == 0) c.sliding_layers.push_back(before > 0);
    if (before == 0) continue;
    if (layer % 2 == 1 || (c.sliding_window > 0 && c.sliding_window != before + 1))
      fail("{}: swa_layers[{}]: wanted {}, got {}", json.place(), layer,
           layer % 2 == 1 ? "0 in an experts layer" : "the window of the layers before it", before);
    c.sliding_window = before + 1;
  }
  if (c.sliding_window == 0) c.sliding_layers.clear();
}

}  // namespace zaya
