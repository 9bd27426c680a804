#include "model/config.h"

#include <cmath>

#include "core/error.h"

namespace zaya {
namespace {

// Larger than any model of this kind, small enough that products of three stay inside int64.
constexpr int64_t kMaxSize = int64_t{1} << 20;
constexpr double kMaxParameters = 1e15;

void check_range(const std::string& place, const char* field, int64_t value, int64_t low,
                 int64_t high) {
  if (value < low || value > high)
    fail("{}: {}: wanted {} to {}, got {}", place, field, low, high, value);
}

}  // namespace

int64_t ModelConfig::rotary_channels() const {
  // HF truncates; the margin keeps 10 * 0.7f from becoming 6.
  return static_cast<int64_t>(
      static_cast<double>(head_dim) * static_cast<double>(partial_rotary_factor) + 1e-4);
}

void check_config(const ModelConfig& c, const std::string& place) {
  check_range(place, "vocab_size", c.vocab_size, 2, int64_t{1} << 24);
  check_range(place, "hidden_size", c.hidden_size, 1, kMaxSize);
  check_range(place, "num_hidden_layers", c.num_hidden_layers, 1, 4096);
  check_range(place, "num_attention_heads", c.num_attention_heads, 1, 4096);
  check_range(place, "num_key_value_heads", c.num_key_value_heads, 1, 4096);
  check_range(place, "head_dim", c.head_dim, 1, 4096);
  check_range(place, "cca_time0", c.cca_time0, 1, 64);
  check_range(place, "cca_time1", c.cca_time1, 1, 64);
  check_range(place, "num_experts", c.num_experts, 1, 4096);
  check_range(place, "moe_intermediate_size", c.moe_intermediate_size, 1, kMaxSize);
  check_range(place, "router_hidden_size", c.router_hidden_size, 1, kMaxSize);
  check_range(place, "max_position_embeddings", c.max_position_embeddings, 1, int64_t{1} << 30);
  // Counts and bytes of everything derived from these must stay inside int64.
  const double experts = 3.0 * static_cast<double>(c.num_experts) *
                         static_cast<double>(c.hidden_size * c.moe_intermediate_size);
  if (experts * static_cast<double>(c.num_hidden_layers) > kMaxParameters)
    fail("{}: wanted at most {:g} parameters, got {:g} in the experts alone", place, kMaxParameters,
         experts * static_cast<double>(c.num_hidden_layers));
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    fail("{}: num_key_value_heads: wanted a divisor of num_attention_heads ({}), got {}", place,
         c.num_attention_heads, c.num_key_value_heads);
  if (c.key_channels() % 2 != 0)
    fail(
        "{}: head_dim: wanted num_key_value_heads * head_dim even (half of the values is delayed), "
        "got {}",
        place, c.key_channels());
  if (!(c.rms_norm_eps > 0) || !(c.rms_norm_eps < 1))
    fail("{}: rms_norm_eps: wanted a number between 0 and 1, got {}", place, c.rms_norm_eps);
  if (!(c.partial_rotary_factor >= 0) || !(c.partial_rotary_factor <= 1))
    fail("{}: partial_rotary_factor: wanted 0 to 1, got {}", place, c.partial_rotary_factor);
  if (c.rotary_channels() % 2 != 0)
    fail(
        "{}: partial_rotary_factor: wanted an even number of a head's {} channels to rotate, got "
        "{}",
        place, c.head_dim, c.rotary_channels());
  for (double base : {c.rope_theta, c.rope_theta_sliding})
    if (!(base > 0) || !std::isfinite(base))
      fail("{}: rope_theta: wanted a positive number, got {}", place, base);
  if (!c.sliding_layers.empty()) {
    if (static_cast<int64_t>(c.sliding_layers.size()) != c.num_hidden_layers)
      fail("{}: layer_types: wanted {} entries, got {}", place, c.num_hidden_layers,
           c.sliding_layers.size());
    for (int64_t block = 0; block < c.num_hidden_layers; ++block)
      if (c.slides(block) && c.sliding_window < 1)
        fail("{}: sliding_window: wanted a positive number (block {} slides), got {}", place, block,
             c.sliding_window);
  }
  if (!(c.initializer_range > 0) || !(c.initializer_range < 10))
    fail("{}: initializer_range: wanted a positive number, got {}", place, c.initializer_range);
}

}  // namespace zaya
