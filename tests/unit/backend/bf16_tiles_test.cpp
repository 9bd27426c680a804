// Legend: C [rows, 32] = A B, terms joined two to a word.
#include "backend/cpu/bf16_tiles.h"

#include <gtest/gtest.h>

#include <vector>

#include "backend/cpu/instruction_set.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::relative_error;
using test::widen;

// What multiply_tiles is told about one product, and the operands it reads.
struct Case {
  int64_t rows, steps, batches, a_padding, b_padding, c_padding;
  bool accumulate;
};

// Relative error against sums in double.
double error_of(const Case& t) {
  const int64_t terms = 2 * TileProduct::kWords * t.steps, columns = TileProduct::kColumns;
  const int64_t a_row = terms / 2 + t.a_padding, b_row = columns + t.b_padding;
  const int64_t c_row = columns + t.c_padding;
  const auto a = cast<bf16>(random_values(t.batches * t.rows * a_row * 2, 1));
  const auto b = cast<bf16>(random_values(t.batches * terms / 2 * b_row * 2, 2));
  auto c = cast<float>(random_values(t.rows * c_row, 3));
  const auto before = c;
  std::vector<double> want(c.begin(), c.end());
  for (int64_t r = 0; r < t.rows; ++r)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = t.accumulate ? before[r * c_row + j] : 0.0;
      for (int64_t batch = 0; batch < t.batches; ++batch)
        for (int64_t k = 0; k < terms; ++k) {
          const auto x = static_cast<float>(a[(batch * t.rows + r) * a_row * 2 + k]);
          const auto y = static_cast<float>(b[((batch * terms + k) / 2 * b_row + j) * 2 + k % 2]);
          sum += double{x} * y;
        }
      want[r * c_row + j] = sum;
    }
  const TileRegisters registers;
  multiply_tiles({.c = c.data(),
                  .c_row = c_row,
                  .a = a.data(),
                  .a_row = a_row,
                  .b = b.data(),
                  .b_row = b_row,
                  .steps = t.steps,
                  .batches = t.batches,
                  .a_batch = t.rows * a_row,
                  .b_batch = terms / 2 * b_row,
                  .accumulate = t.accumulate},
                 t.rows);
  // What lies between the rows of C is not theirs.
  return relative_error(widen(c), want);
}

TEST(Bf16Tiles, ProductsMatchSumsInDouble) {
  if (!has_bf16_tiles()) GTEST_SKIP() << "this machine has no tile registers";
  for (const Case& t : {Case{32, 1, 1, 0, 0, 0, false}, Case{32, 1, 1, 0, 0, 0, true},
                        Case{64, 3, 1, 4, 0, 0, false}, Case{96, 2, 3, 0, 32, 8, true},
                        Case{32, 1, 4, 16, 16, 32, false}})
    EXPECT_LT(error_of(t), 1e-6) << t.rows << " " << t.steps << " " << t.batches;
}

}  // namespace
}  // namespace zaya
