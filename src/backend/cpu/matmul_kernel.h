#pragma once
// One product of small dense matrices on the calling thread, by a oneDNN primitive that is made
// once for its shape and kept.

#include <cstdint>

#include "core/ceil_div.h"
#include "core/dtype.h"

namespace zaya {

// C [m, n] = A B (+ C when accumulate), sums in fp32.
//   A: [m, k], or [k, m] when transpose_a.   B: [k, n], or [n, k] when transpose_b.
// All dense. `in`: the format of A and B, `out`: of C; f32 or bf16 (bf16 wants multiplies_bf16(),
// accumulating an f32 C).
struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType in = DType::f32, out = DType::f32;
  bool accumulate = false;

  friend bool operator==(const MatmulShape&, const MatmulShape&) = default;
};

void matmul(const MatmulShape& shape, void* c, const void* a, const void* b);

// Counts of tokens differ from call to call: rows of C, or terms of the sum when A is transposed.
// Rounded up, so that few shapes repeat; the second count of an otherwise equal shape makes the
// primitives of all counts up to most_rows() or kMostTerms.
inline constexpr int64_t kMostTerms = 1024;  // a tile's operands stay in the cache
int64_t most_rows();
// Every row has the same bits whatever the rows beside it.
int64_t uniform_rows(int64_t rows);
inline constexpr int64_t kTermUnit = 32;
inline int64_t uniform_terms(int64_t terms) { return round_up(terms, kTermUnit); }

// True where oneDNN asks for memory to pack operands into at every call: its kernels without
// AVX-512 do; those with it work in memory that is kept here.
bool products_take_memory();

// Primitives made so far by this process. A training step in steady state makes none.
int64_t matmul_primitives_made();

}  // namespace zaya
