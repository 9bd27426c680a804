#pragma once
// The ceiling of matrix products on this machine.

#include "core/dtype.h"

namespace zaya {

// Operations a second (two a multiply-add) of oneDNN itself, f32 or bf16 operands and f32 sums: one
// call over all threads, cut and packed as it likes, the best of several calls and sizes. Takes
// about a second. bf16 wants multiplies_bf16().
double measure_gemm_peak(DType dtype);

}  // namespace zaya
