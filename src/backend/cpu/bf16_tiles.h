#pragma once
// Products of bf16 pairs in tile registers (Intel's AMX): 16 x 16 sums of 32 terms in one
// instruction, for kernels that keep their operands in a cache. oneDNN has its own.

#include <cstdint>

namespace zaya {

// C [rows, kColumns] f32 (+)= A B over `batches` of kWords * steps words, a and b moving by a_batch
// and b_batch between. A word is two bf16 in 32 bits, the first in the lower half.
//   A: words [rows, kWords * steps], two terms of a row in each.
//   B: words [kWords * steps, kColumns], two terms of a column in each.
// Strides count words and floats.
struct TileProduct {
  static constexpr int64_t kRows = 32;  // `rows` is a multiple of it
  static constexpr int64_t kColumns = 32;
  static constexpr int64_t kWords = 16;

  float* c = nullptr;
  int64_t c_row = 0;
  const void* a = nullptr;
  int64_t a_row = 0;
  const void* b = nullptr;
  int64_t b_row = 0;
  int64_t steps = 0;
  int64_t batches = 1, a_batch = 0, b_batch = 0;
  bool accumulate = false;
};

// A thread's tile registers while it multiplies. oneDNN sets them up anew at each call of its own,
// so it must not be called meanwhile.
class TileRegisters {
 public:
  TileRegisters();
  ~TileRegisters();
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

// Needs has_bf16_tiles() and TileRegisters. A sum's bits depend on its own row and column and on
// the order of its terms alone; denormals count as zero.
void multiply_tiles(const TileProduct& product, int64_t rows);

}  // namespace zaya
