#pragma once
// The shape of a ZAYA1-class model. Fields carry the names of HF's config.json, which is also how
// recipes spell them.

#include <cstdint>
#include <string>
#include <vector>

#include "ops/experts/combine.h"

namespace zaya {

struct ModelConfig {
  int64_t vocab_size = 0;             // V
  int64_t hidden_size = 0;            // D
  int64_t num_hidden_layers = 0;      // blocks, each attention + experts
  int64_t num_attention_heads = 0;    // nq
  int64_t num_key_value_heads = 0;    // nk
  int64_t head_dim = 0;               // d
  int64_t cca_time0 = 2;              // taps of the depthwise convolution
  int64_t cca_time1 = 2;              // taps of the grouped convolution
  int64_t num_experts = 0;            // E, and one skip slot more in the router
  int64_t moe_intermediate_size = 0;  // I
  int64_t router_hidden_size = 0;     // R
  float rms_norm_eps = 1e-5f;
  bool tie_word_embeddings = true;

  float partial_rotary_factor = 0.5f;  // share of a head's channels that rotate
  double rope_theta = 10000.0;         // rotary base of full attention; phases change it
  double rope_theta_sliding = 10000.0;
  int64_t sliding_window = 0;  // W: a token sees itself and W - 1 before it
  // Which blocks slide; empty: none does. Otherwise num_hidden_layers entries.
  std::vector<bool> sliding_layers;
  int64_t max_position_embeddings = 4096;

  float initializer_range = 0.02f;
  Skip skip = Skip::zero;  // what the skip slot gives: nothing, or (original layout) gate * h

  // C: channels of concat(q, k), which the convolutions run over.
  int64_t qk_channels() const { return (num_attention_heads + num_key_value_heads) * head_dim; }
  int64_t query_channels() const { return num_attention_heads * head_dim; }
  int64_t key_channels() const { return num_key_value_heads * head_dim; }
  int64_t router_classes() const { return num_experts + 1; }
  // Rotating channels of a head, even.
  int64_t rotary_channels() const;
  // Rows of concat(q, k) that a decoder must remember: (time0 - 1) + (time1 - 1).
  int64_t conv_history() const { return cca_time0 + cca_time1 - 2; }
  bool slides(int64_t block) const { return !sliding_layers.empty() && sliding_layers[block]; }
  int64_t window(int64_t block) const { return slides(block) ? sliding_window : 0; }
};

// Throws Error "PLACE: FIELD: wanted ..., got ..." unless the sizes are positive, bounded and fit
// together (key heads divide query heads, an even number of value channels, ...).
void check_config(const ModelConfig& config, const std::string& place);

struct ParameterCounts {
  int64_t total = 0;
  int64_t without_embeddings = 0;
  int64_t active = 0;  // used by one token, without embeddings
};
ParameterCounts count_parameters(const ModelConfig& config);

}  // namespace zaya
