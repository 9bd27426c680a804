#pragma once
// Chooses the next token from logits. The definition, in this order, over ids 0 .. tokens - 1 (rows
// of a model beyond its tokenizer's tokens are never chosen):
//
//   logit_bias          x[id] += bias; minus infinity forbids the token
//   repetition_penalty  for each id seen, in the prompt or in what was chosen:
//                       x < 0 ? x * penalty : x / penalty    (CTRL, Keskar et al. 2019)
//   temperature         0: the largest x is chosen. Otherwise a token's share is
//                       e^((x - max x) / temperature), rounded to a multiple of 2^-40
//   top_k               the k largest x are kept
//   top_p               of the kept, ranked by share, the shortest leading run that has this part
//                       of all their shares is kept
//   min_p               of these, those are kept whose share is at least min_p
//   draw                one of the kept, with a probability in proportion to its share
//
// Of equals the smaller id comes first, everywhere.

#include <functional>
#include <string>
#include <string_view>

#include "core/tensor.h"
#include "infer/ranking.h"

namespace zaya {

struct LogitBias {
  int32_t id;
  float bias;
};

struct SamplingOptions {
  float temperature = 0.8f;
  int64_t top_k = 0;  // 0: all
  float top_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  std::vector<LogitBias> logit_bias = {};  // ids in the vocabulary
  uint64_t seed = 0;
};

// "top_p" as "--top-p".
std::string flag_name(std::string_view field);
// Throws Error "NAME: wanted ..., got ...", NAME being name(field).
void check_sampling(const SamplingOptions& options,
                    const std::function<std::string(std::string_view)>& name = flag_name);

class TokenSampler {
 public:
  // For a tokenizer of so many tokens.
  TokenSampler(SamplingOptions options, int32_t tokens);

  // These tokens count as seen.
  void see(std::span<const int32_t> ids);
  // Forgets what was seen. The draws go on.
  void forget();
  // Chooses, and sees its choice. logits [1, V] f32, V >= tokens. The i-th call of equal samplers
  // that saw the same gives the same token, for any number of threads. Logits that are not finite:
  // an Error.
  int32_t next(const Tensor& logits);

 private:
  void prepare(std::span<const float> logits);
  int32_t draw();
  bool limits_count() const;
  void weigh_largest();

  SamplingOptions options_;
  uint64_t draws_ = 0;
  std::vector<uint8_t> seen_;  // [tokens]
  std::vector<int32_t> seen_ids_;
  std::vector<float> x_;  // [tokens]
  BlockMaxima largest_;   // of x_
  Shares shares_;         // of all tokens
  // What top_k keeps, where it limits.
  std::vector<int32_t> positions_;
  std::vector<Candidate> candidates_;
  // The weights of what top_k keeps, summed; and of those of them that min_p would keep.
  uint64_t all_ = 0, heavy_ = 0;
};

}  // namespace zaya
