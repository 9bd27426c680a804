#pragma once
// Arithmetic of one forward and backward pass, by group of ops: what the model asks for, whatever
// an implementation does besides.

#include <array>

#include "backend/profile.h"
#include "model/batch.h"
#include "model/config.h"

namespace zaya {

// Two operations a multiply-add; backward counts as two forwards. Products only: projections, both
// convolutions, scores and sums over the keys each query sees, the router's matrices, the experts,
// the head. Norms, activations and recomputed scores count as nothing.
//   expert_tokens: how many tokens went through an expert, summed over the blocks. At most
//   blocks * T: the skip slot multiplies nothing.
std::array<double, kOpGroups> training_flops(const ModelConfig& config, const TokenBatch& batch,
                                             int64_t expert_tokens);

}  // namespace zaya
