#pragma once
// config.json of the original layout: two alternating layers a block. It comes in two dialects:
//
//   lists     zaya_layers, cca_num_q_heads, ...: an entry a layer, 0 where it does not apply;
//             num_attention_heads counts twice the query heads, and a head has
//             hidden_size / num_attention_heads channels
//   scalars   num_experts, head_dim, swa_layers, ...: num_attention_heads counts the query heads
//
// zaya reads both and writes scalars, which can say all that a ModelConfig can.

#include "core/json.h"
#include "model/config.h"

namespace zaya {

// Whether the config has fields that only the original layout knows.
bool is_original_config(const JsonObject& json);

// Reads and checks. Errors name `place` (the file), field, what was wanted and what came.
ModelConfig original_config_from_json(const Json& json, const std::string& place);

// What makes the model what it is. A model whose skip slot gives nothing (Skip::zero, which the
// original layout does not know) says so in a key of ours, "zaya_skip".
Json original_config_to_json(const ModelConfig& config);

}  // namespace zaya
