#pragma once
// The fields of an original-layout config.json that say something of each layer, as lists or as
// scalars (original_config.h tells the dialects apart). Blocks have to be alike.

#include "core/json.h"
#include "model/config.h"

namespace zaya {

inline constexpr int64_t kMaxOriginalSize = int64_t{1} << 30;

// Heads, experts, their width and the router's. `layers`: num_hidden_layers, two a block. A list in
// one dialect and a scalar in the other may stand side by side as long as they agree.
void read_layer_sizes(const JsonObject& json, int64_t layers, ModelConfig& config);

// swa_layers: an entry a layer, of 0 or how many tokens an attention layer sees before the present
// one: a window of W tokens is written W - 1.
void read_layer_windows(const JsonObject& json, int64_t layers, ModelConfig& config);

}  // namespace zaya
