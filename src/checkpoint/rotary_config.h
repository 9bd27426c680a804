#pragma once
// The rotary embedding's fields in a config.json, which HF has moved about over the years.

#include "core/json.h"

namespace zaya {

struct Rotary {
  double theta = 10000;
  double factor = 0.5;  // share of a head's channels that rotate
};

// `layer_type`'s values. rope_parameters holds one entry a layer type, sometimes with a stray
// "rope_type" beside them; or, flat, one for all; or its fields stand at the top of the config. A
// layer type in use has to find its base somewhere: a guessed one computes another model without a
// word. So has the factor, unless the layout gives it a default.
Rotary read_rotary(const JsonObject& config, std::string_view layer_type, bool used,
                   const double* default_factor = nullptr);

// Error unless rope_scaling is absent, null or false.
void refuse_rope_scaling(const JsonObject& config);

}  // namespace zaya
