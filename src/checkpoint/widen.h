#pragma once
// Stored floats of any width as f32.

#include "core/tensor.h"

namespace zaya {

inline bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

// to [...] f32, from f32, bf16 or f16 of the same size, both contiguous.
void widen(const Tensor& to, const Tensor& from);

// x: f32 or bf16, contiguous.
bool all_finite(const Tensor& x);

}  // namespace zaya
