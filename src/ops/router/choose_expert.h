#pragma once
// Probabilities over E experts and one skip slot, and the choice:
//   s = softmax(logits)
//   choice = argmax_e(s[e] + balancing_bias[e]), the lowest index on a tie
//   gate = s[choice]: the bias chooses only, it never weighs
// T tokens, K = E + 1 classes; class E is the skip slot. All f32 but the choice.
// A NaN among the logits makes the row's probabilities and gate NaN; the choice stays in [0, K).

#include <cstdint>

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// probabilities [T, K]: saved;  choice [T] i32 in [0, K);  gate [T];  logits [T, K];
// balancing_bias [K].
void choose_expert_forward(Context& ctx, const Tensor& probabilities, const Tensor& choice,
                           const Tensor& gate, const Tensor& logits, const Tensor& balancing_bias);

// dlogits [T, K]: overwritten.   dgate [T].  The choice is a constant.
void choose_expert_backward(Context& ctx, const Tensor& dlogits, const Tensor& dgate,
                            const Tensor& probabilities, const Tensor& choice);

// counts [K] i64: adds how many tokens chose each class.
void count_choices(Context& ctx, const Tensor& counts, const Tensor& choice);

}  // namespace zaya
