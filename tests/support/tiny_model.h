#pragma once
// A small model and a batch for it, for tests of the rooms above the ops.

#include <numeric>

#include "model/zaya.h"

namespace zaya::test {

inline ModelConfig tiny_config() {
  ModelConfig c;
  c.vocab_size = 97;
  c.hidden_size = 32;
  c.num_hidden_layers = 3;
  c.num_attention_heads = 4;
  c.num_key_value_heads = 2;
  c.head_dim = 8;
  c.cca_time0 = 3;
  c.cca_time1 = 2;
  c.num_experts = 4;
  c.moe_intermediate_size = 24;
  c.router_hidden_size = 12;
  c.sliding_window = 7;
  c.sliding_layers = {false, true, false};
  c.initializer_range = 0.2f;
  return c;
}

inline Zaya tiny_model(const ModelConfig& config, DType compute = DType::f32) {
  Context ctx;
  Zaya model(config, compute, Gradients::allocate);
  model.parameters().initialize(ctx, 5);
  return model;
}

// Documents of these lengths, laid end to end; each token's label is the next token of its
// document.
struct TinyBatch {
  std::vector<int32_t> ids, labels, cu_seqlens{0};

  TinyBatch(const ModelConfig& config, const std::vector<int32_t>& lengths, uint32_t seed = 1) {
    uint32_t state = seed;
    for (int32_t length : lengths) {
      for (int32_t i = 0; i < length; ++i) {
        state = state * 1664525u + 1013904223u;
        ids.push_back(static_cast<int32_t>((state >> 8) % config.vocab_size));
      }
      for (int32_t i = 0; i < length; ++i)
        labels.push_back(i + 1 < length ? ids[cu_seqlens.back() + i + 1] : -100);
      cu_seqlens.push_back(static_cast<int32_t>(ids.size()));
    }
  }
  TokenBatch tokens() const {
    TokenBatch batch;
    batch.set(ids, labels, cu_seqlens);
    return batch;
  }
};

inline std::vector<float> values_of(const Tensor& x) {
  return {x.as<float>(), x.as<float>() + x.size()};
}

}  // namespace zaya::test
