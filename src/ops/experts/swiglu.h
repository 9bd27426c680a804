#pragma once
// y = silu(g) * u, with g = gate_up[:, :I] and u = gate_up[:, I:].  M rows, I inner width.
// silu(g) = g / (1 + exp(-g)), computed in fp32.

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// y [M, I];  gate_up [M, 2 I]: one format, f32 or bf16.
void swiglu_forward(Context& ctx, const Tensor& y, const Tensor& gate_up);

// dgate_up [M, 2 I]: overwritten (may be gate_up itself).   dy [M, I].
void swiglu_backward(Context& ctx, const Tensor& dgate_up, const Tensor& dy, const Tensor& gate_up);

}  // namespace zaya
