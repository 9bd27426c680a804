#pragma once
// The experts' outputs back in token order, weighed by the router:
//   y[t] = gate[t] * expert_out[i]  where order[i] = t
// A token that chose the skip slot gets y = 0 (Skip::zero, the current layout) or gate[t] * h[t]
// (Skip::pass, the original layout). T tokens, D hidden, E experts.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

enum class Skip { zero, pass };

// y [T, D], expert_out [T, D] (sorted rows), h [T, D]: f32 or bf16 (the same);  gate [T] f32;
// order, offsets: dispatch.h.   h is read only for Skip::pass.
void combine_forward(Context& ctx, const Tensor& y, const Tensor& expert_out, const Tensor& h,
                     const Tensor& gate, const Tensor& order, const Tensor& offsets, Skip skip);

// dexpert_out [T, D] like expert_out: overwritten for sorted positions < offsets[E].
// dh [T, D] f32: under Skip::pass overwritten, non-zero for skipped tokens only; under Skip::zero
// not touched, and may have null data.
// dgate [T] f32: overwritten.   dy [T, D] like y.
void combine_backward(Context& ctx, const Tensor& dexpert_out, const Tensor& dh,
                      const Tensor& dgate, const Tensor& dy, const Tensor& expert_out,
                      const Tensor& h, const Tensor& gate, const Tensor& order,
                      const Tensor& offsets, Skip skip);

}  // namespace zaya
