#pragma once
// The residual scaling of ZAYA1 (zaya1.md section 2, "Merge") and the norm that reads its result:
//   y = (o + hidden_bias) * hidden_scale + (x + residual_bias) * residual_scale
//   h = y / sqrt(mean(y^2) + eps) * weight                          (per row; sums in fp32)
// T tokens, D hidden. One pass over memory in each direction: forward reads o and x and writes y
// and h, the least there is; backward reads dx, dh, y, o and x and writes dx and d_o.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// Each [D] f32.
struct MergeVectors {
  Tensor hidden_bias;  // added to the block's output
  Tensor hidden_scale;
  Tensor residual_bias;  // added to the residual stream
  Tensor residual_scale;
};

// The tensors of one merge. x may not be y.
struct Merge {
  Tensor y;  // [T, D] f32, the stream after it
  Tensor o;  // [T, D] f32 or bf16, what is merged in
  Tensor x;  // [T, D] f32, the stream before it
  MergeVectors vectors;
};

// Writes merge.y;  h [T, D] f32 or bf16;  rstd [T] f32 (saved: 1 / sqrt(mean + eps));  weight [D]
// f32.
void merge_norm_forward(Context& ctx, const Merge& merge, const Tensor& h, const Tensor& rstd,
                        const Tensor& weight, float eps);

// dx [T, D] f32: on entry what reaches y other than through h, on return the gradient of x.
// d_o [T, D], of o's format: overwritten.   dvectors, dweight [D] f32: add.   dh [T, D] f32.
void merge_norm_backward(Context& ctx, const Tensor& dx, const Tensor& d_o,
                         const MergeVectors& dvectors, const Tensor& dweight, const Tensor& dh,
                         const Merge& merge, const Tensor& rstd, const Tensor& weight);

}  // namespace zaya
