#pragma once
// Matrix products on CPUs, by oneDNN. Outputs are cut into tiles that do not depend on the number
// of threads and each tile is computed by one thread, so results are bit-identical for any thread
// count.

#include <span>

#include "core/tensor.h"

namespace zaya {

// C [M, N] = A B (+ C when accumulate), sums in fp32.
//   a: [M, K], or [K, M] when transpose_a.    b: [K, N], or [N, K] when transpose_b.
//   Each f32 or bf16 (bf16 operands are exact in fp32); rows may be strided. c: f32 or bf16,
//   rounded once when bf16. Accumulating wants an f32 c.
//   M, N or K may be 0; K = 0 without accumulate clears C.
struct Gemm {
  Tensor c;
  Tensor a;
  Tensor b;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
};

void gemm(const Gemm& product);
// Products that do not read each other's outputs, all tiles in one parallel loop.
void gemm_batch(std::span<const Gemm> products);

}  // namespace zaya
