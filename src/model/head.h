#pragma once
// The head: logits = W h, h the normed residual stream, and cross entropy over them a few rows at a
// time; all logits of a batch never exist together. T tokens, D hidden, V vocabulary.

#include "core/arena.h"
#include "model/parameters.h"

namespace zaya {

struct HeadParameters {
  Parameter* norm;    // [D]
  Parameter* weight;  // [V, D]: lm_head, or the embedding table when tied
};

HeadParameters head_parameters(Parameters& parameters, const ModelConfig& config);

// Rows of logits held at a time: a few megabytes of them, whatever the vocabulary.
int64_t head_chunk_rows(int64_t vocab_size);

struct HeadSaved {
  Tensor rstd;    // [T]
  Tensor h;       // [T, D] A
  Tensor losses;  // [T] f32
};

HeadSaved plan_head(Arena& arena, const ModelConfig& config, DType activation, int64_t T);

// logits [n, V] f32 of the rows h [n, D] of saved.h.
void head_logits(Context& ctx, const HeadParameters& weights, const Tensor& logits,
                 const Tensor& h);

// saved.losses [T] for labels [T] i32, saved.h being there.
void head_losses(Context& ctx, const HeadParameters& weights, const HeadSaved& saved,
                 const Tensor& labels, Arena& scratch);

// As head_losses, and: dh [T, D] f32: overwritten with the gradient of scale * (sum of losses);
// the weight's gradient adds.
void head_losses_backward(Context& ctx, const HeadParameters& weights, const Tensor& dh,
                          const HeadSaved& saved, const Tensor& labels, float scale,
                          Arena& scratch);

}  // namespace zaya
