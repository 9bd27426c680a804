#pragma once
// Cross entropy in fp32 over rows of logits:  loss = logsumexp(logits) - logits[label].
// Labels of -100 are not counted. A caller holds the logits of a few rows at a time, never of all.
// R rows, V vocabulary.

#include <cstdint>

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

inline constexpr int32_t kIgnoredLabel = -100;

// losses [R] f32 (0 where ignored);  logits [R, V] f32;  labels [R] i32.
void cross_entropy_forward(Context& ctx, const Tensor& losses, const Tensor& logits,
                           const Tensor& labels);

// As forward, and dlogits [R, V] f32 or bf16: overwritten (may be logits itself when f32) with
// (softmax(logits) - onehot(label)) * scale, zero where ignored. The logits are used up: what they
// hold afterwards is of no use.
void cross_entropy_forward_backward(Context& ctx, const Tensor& losses, const Tensor& dlogits,
                                    const Tensor& logits, const Tensor& labels, float scale);

// Sum of x [R] f32 in a fixed order, in double.
double sum_rows(Context& ctx, const Tensor& x);

}  // namespace zaya
