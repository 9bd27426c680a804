#pragma once
// Chooses the next token from logits: temperature, top-k, top-p (nucleus), seeded.

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace zaya {

struct SamplingOptions {
  float temperature = 0.8f;  // 0: always the likeliest token
  int64_t top_k = 0;         // keep the k likeliest tokens; 0: all
  float top_p = 1.0f;        // then keep the likeliest tokens that together reach this probability
  uint64_t seed = 0;
};

// Throws Error "--temperature: wanted ..., got ...".
void check_sampling(const SamplingOptions& options);

class TokenSampler {
 public:
  explicit TokenSampler(const SamplingOptions& options) : options_(options) {}
  // The i-th call of equal samplers over equal logits gives equal tokens, on every machine.
  // logits [1, V] f32. Equal probabilities rank by id. Logits that are not finite: an Error.
  int32_t next(const Tensor& logits);

 private:
  SamplingOptions options_;
  uint64_t draws_ = 0;
  std::vector<int32_t> order_;
  std::vector<double> weights_;
};

}  // namespace zaya
