#pragma once
// config.json of HF's ZayaForCausalLM (the current layout: one entry a block).

#include "core/json.h"
#include "model/config.h"

namespace zaya {

// Reads and checks a config.json. Errors name file, field, what was wanted and what came.
// The original alternating-layer layout is refused by name.
ModelConfig read_hf_config(const std::filesystem::path& config_json);
ModelConfig hf_config_from_json(const Json& json, const std::string& place);

// The config.json of a model with these token ids (negative: none). Tensors are stored as `dtype`.
Json hf_config_to_json(const ModelConfig& config, int64_t bos_token_id, int64_t eos_token_id,
                       std::string_view dtype);

}  // namespace zaya
