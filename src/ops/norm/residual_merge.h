#pragma once
// The residual scaling of ZAYA1 (zaya1.md section 2, "Merge"):
//   y = (o + hidden_bias) * hidden_scale + (x + residual_bias) * residual_scale
// T tokens, D hidden. All four vectors are [D] f32.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

struct MergeVectors {
  Tensor hidden_bias;     // [D] added to the block's output
  Tensor hidden_scale;    // [D]
  Tensor residual_bias;   // [D] added to the residual stream
  Tensor residual_scale;  // [D]
};

// y [T, D] f32 (may be x itself);  o [T, D] f32 or bf16;  x [T, D] f32.
void residual_merge_forward(Context& ctx, const Tensor& y, const Tensor& o, const Tensor& x,
                            const MergeVectors& vectors);

// dx [T, D] f32: overwritten (may be dy itself).   d_o [T, D] f32 or bf16: overwritten.
// dvectors: add.   dy [T, D] f32.
void residual_merge_backward(Context& ctx, const Tensor& dx, const Tensor& d_o,
                             const MergeVectors& dvectors, const Tensor& dy, const Tensor& o,
                             const Tensor& x, const MergeVectors& vectors);

}  // namespace zaya
