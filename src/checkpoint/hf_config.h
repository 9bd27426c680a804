#pragma once
// config.json of HF's ZayaForCausalLM (the current layout: one entry a block).

#include "core/json.h"
#include "model/config.h"

namespace zaya {

// Reads and checks. Errors name `place` (the file), field, what was wanted and what came.
ModelConfig hf_config_from_json(const Json& json, const std::string& place);

// What makes the model what it is; a model whose skip slot passes (Skip::pass) says so in a key of
// ours, "zaya_skip", which HF ignores.
Json hf_config_to_json(const ModelConfig& config);
// And with these token ids (negative: none). Tensors are stored as `dtype`.
Json hf_config_to_json(const ModelConfig& config, int64_t bos_token_id, int64_t eos_token_id,
                       std::string_view dtype);

// "zaya_skip", in either layout's config: "zero" or "pass"; where it is absent, what the layout
// does.
Skip read_skip(const JsonObject& json, Skip fallback);

// The shortest decimal that reads back as this float, so that 1e-5f is written as 1e-05.
double shortest(float value);

}  // namespace zaya
