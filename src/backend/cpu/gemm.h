#pragma once
// Matrix products on CPUs, by oneDNN. Outputs are cut into tiles that do not depend on the number
// of threads and each tile is computed by one thread, so results are bit-identical for any thread
// count.

#include <span>

#include "core/weight.h"

namespace zaya {

// A [M, K] and B [K, N]; A is held as [K, M] when transpose_a, B as [N, K] when transpose_b.
struct GemmTerm {
  Tensor a;
  Weight b;  // codes want transpose_b
};

// C [M, N] = A B (+ C when accumulate), sums in fp32; with `more`, the sum of several products.
//   a and b: f32 or bf16; rows may be strided. bf16 operands are exact in fp32 and are multiplied
//   as bf16 pairs where the machine can and both are bf16. A b of codes is multiplied as what a is,
//   its values rounded to that.
//   c: f32 or bf16, rounded once when bf16. Accumulating wants an f32 c.
//   M, N or K may be 0; K = 0 without accumulate clears C.
struct Gemm {
  Tensor c;
  Tensor a;
  Weight b;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  std::span<const GemmTerm> more = {};  // must outlive the call
};

void gemm(const Gemm& product);
// Products that do not read each other's outputs, all tiles in one parallel loop.
void gemm_batch(std::span<const Gemm> products);

}  // namespace zaya
