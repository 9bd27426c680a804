// Legend: C [M, N] = A [M, K] B [K, N].
#include "backend/cpu/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/matmul_kernel.h"
#include "backend/cpu/threads.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::widen;

// A matrix whose rows are `padding` elements apart, so that rows are strided when it is not zero.
template <class T>
struct Matrix {
  std::vector<T> values;
  Tensor tensor;

  Matrix(int64_t rows, int64_t columns, uint64_t seed, int64_t padding = 0) {
    values = cast<T>(random_values(rows * (columns + padding), seed));
    const Tensor whole(values.data(), DTypeOf<T>::value, {rows, columns + padding});
    tensor = whole.column_range(0, columns);
  }
  double at(int64_t r, int64_t c) const { return static_cast<float>(tensor.template row<T>(r)[c]); }
};

template <class T>
std::vector<double> visible(const Matrix<T>& m) {
  std::vector<double> out;
  for (int64_t r = 0; r < m.tensor.rows(); ++r) {
    for (int64_t c = 0; c < m.tensor.columns(); ++c) out.push_back(m.at(r, c));
  }
  return out;
}

template <class TC, class TA, class TB>
double error_of_product(int64_t m, int64_t n, int64_t k, bool ta, bool tb, bool accumulate,
                        int64_t padding) {
  Matrix<TA> a(ta ? k : m, ta ? m : k, 1, padding);
  Matrix<TB> b(tb ? n : k, tb ? k : n, 2, padding);
  Matrix<TC> c(m, n, 3, padding);
  std::vector<double> expected;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = accumulate ? c.at(i, j) : 0;
      for (int64_t x = 0; x < k; ++x)
        sum += (ta ? a.at(x, i) : a.at(i, x)) * (tb ? b.at(j, x) : b.at(x, j));
      expected.push_back(sum);
    }
  }
  gemm({.c = c.tensor,
        .a = a.tensor,
        .b = b.tensor,
        .transpose_a = ta,
        .transpose_b = tb,
        .accumulate = accumulate});
  return test::relative_error(visible(c), expected);
}

// Sums of random terms in fp32: an error of a few times 2^-24, growing with sqrt(K); 1e-5 leaves
// room.
constexpr double kF32 = 1e-5;
// bf16 outputs are rounded once: at most 2^-8 of each value.
constexpr double kBf16 = 1.0 / 256;

TEST(Gemm, EveryLayoutGivesTheProduct) {
  const int64_t shapes[][3] = {{1, 1, 1},   {3, 5, 7},      {16, 16, 16}, {65, 33, 129},
                               {97, 1, 20}, {200, 144, 40}, {1, 300, 64}, {5, 9, 2500}};
  for (const auto& s : shapes) {
    for (int flags = 0; flags < 8; ++flags) {
      const bool ta = flags & 1, tb = flags & 2, add = flags & 4;
      EXPECT_LT((error_of_product<float, float, float>(s[0], s[1], s[2], ta, tb, add, 0)), kF32);
      EXPECT_LT((error_of_product<float, float, float>(s[0], s[1], s[2], ta, tb, add, 3)), kF32);
      EXPECT_LT((error_of_product<float, bf16, float>(s[0], s[1], s[2], ta, tb, add, 3)), kF32);
      EXPECT_LT((error_of_product<float, float, bf16>(s[0], s[1], s[2], ta, tb, add, 0)), kF32);
      if (!add) {
        EXPECT_LT((error_of_product<bf16, bf16, bf16>(s[0], s[1], s[2], ta, tb, add, 5)), kBf16);
      }
    }
  }
}

TEST(Gemm, LeavesTheColumnsBesideAStridedOutputAlone) {
  Matrix<float> a(5, 8, 1), b(8, 6, 2), c(5, 6, 3, 2);
  const auto before = c.values;
  gemm({.c = c.tensor, .a = a.tensor, .b = b.tensor});
  for (int64_t r = 0; r < 5; ++r) {
    EXPECT_EQ(c.values[r * 8 + 6], before[r * 8 + 6]);
    EXPECT_EQ(c.values[r * 8 + 7], before[r * 8 + 7]);
  }
}

TEST(Gemm, DoesNotReadAnOutputItOverwrites) {
  for (int64_t m : {5, 96}) {
    Matrix<float> a(m, 8, 1), b(8, 6, 2), c(m, 6, 3);
    std::fill(c.values.begin(), c.values.end(), std::numeric_limits<float>::quiet_NaN());
    gemm({.c = c.tensor, .a = a.tensor, .b = b.tensor});
    for (float v : c.values) EXPECT_TRUE(std::isfinite(v));
  }
}

TEST(Gemm, AnEmptySumClearsOrKeepsTheOutput) {
  Matrix<float> c(3, 4, 3, 1);
  const auto before = c.values;
  const Tensor a(nullptr, DType::f32, {3, 0}), b(nullptr, DType::f32, {0, 4});
  gemm({.c = c.tensor, .a = a, .b = b, .accumulate = true});
  EXPECT_EQ(c.values, before);
  gemm({.c = c.tensor, .a = a, .b = b});
  for (double v : visible(c)) EXPECT_EQ(v, 0);
  EXPECT_EQ(c.values[4], before[4]);
}

TEST(Gemm, AnEmptyOutputIsNoWork) {
  Matrix<float> b(8, 4, 2);
  gemm({.c = Tensor(nullptr, DType::f32, {0, 4}),
        .a = Tensor(nullptr, DType::f32, {0, 8}),
        .b = b.tensor});
  gemm({.c = Tensor(nullptr, DType::f32, {8, 0}),
        .a = b.tensor,
        .b = Tensor(nullptr, DType::f32, {4, 0})});
  gemm_batch({});
}

TEST(Gemm, RefusesShapesThatDoNotFit) {
  Matrix<float> a(3, 8, 1), b(7, 4, 2), c(3, 4, 3);
  EXPECT_THROW(gemm({.c = c.tensor, .a = a.tensor, .b = b.tensor}), ContractError);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void expect_same_bits_for_any_number_of_threads(int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
  Matrix<T> a(ta ? k : m, ta ? m : k, 1), b(tb ? n : k, tb ? k : n, 2), c(m, n, 3);
  std::vector<T> first;
  for (int threads : {1, 2}) {
    set_thread_count(threads);
    gemm({.c = c.tensor, .a = a.tensor, .b = b.tensor, .transpose_a = ta, .transpose_b = tb});
    if (threads == 1) first = c.values;
    EXPECT_TRUE(same_bits(c.values, first)) << m << " " << n << " " << k << " " << ta << tb;
  }
  set_thread_count(0);
}

// Small outputs of long sums are where oneDNN left alone divides the sum among its threads.
TEST(Gemm, BitsDoNotDependOnTheNumberOfThreads) {
  const int64_t shapes[][3] = {{64, 64, 8192}, {300, 40, 5000}, {1, 1, 9000}, {256, 256, 512}};
  for (const auto& [m, n, k] : shapes) {
    for (int flags = 0; flags < 4; ++flags) {
      expect_same_bits_for_any_number_of_threads<float>(m, n, k, flags & 1, flags & 2);
    }
    expect_same_bits_for_any_number_of_threads<bf16>(m, n, k, false, true);
  }
}

// A batch of rows of every size, made of rows of one big batch in another place, repeats their
// bits.
template <class T>
void expect_rows_do_not_depend_on_the_batch(int64_t n, int64_t k, bool tb, bool accumulate) {
  constexpr int64_t kRows = 300;
  Matrix<T> a(kRows, k, 1), b(tb ? n : k, tb ? k : n, 2);
  Matrix<float> whole(kRows, n, 3);
  const Matrix<float> start = whole;
  gemm({.c = whole.tensor,
        .a = a.tensor,
        .b = b.tensor,
        .transpose_b = tb,
        .accumulate = accumulate});
  for (int64_t m :
       {1, 2, 3, 5, 8, 16, 17, 31, 32, 47, 49, 64, 80, 95, 96, 97, 128, 160, 193, 256}) {
    const int64_t first = 300 - m - (m % 7) * (m < 200);
    Matrix<float> c(m, n, 4);
    std::memcpy(c.values.data(), &start.values[first * n], m * n * sizeof(float));
    gemm({.c = c.tensor,
          .a = a.tensor.row_range(first, first + m),
          .b = b.tensor,
          .transpose_b = tb,
          .accumulate = accumulate});
    EXPECT_EQ(0, std::memcmp(c.values.data(), &whole.values[first * n], m * n * sizeof(float)))
        << m << " rows, N = " << n << ", K = " << k << ", transpose_b = " << tb;
  }
}

TEST(Gemm, ARowDoesNotDependOnTheRowsAroundIt) {
  for (int64_t n : {1, 2, 3, 9, 17, 40, 130, 200}) {
    for (int64_t k : {1, 16, 100, 256, 1030}) {
      for (bool tb : {false, true}) {
        expect_rows_do_not_depend_on_the_batch<float>(n, k, tb, false);
      }
    }
  }
  expect_rows_do_not_depend_on_the_batch<float>(200, 256, true, true);
  expect_rows_do_not_depend_on_the_batch<bf16>(200, 256, true, false);
}

// Many small tiles of rows (M < 192 * 16 / column tiles) or few large ones: the same row again.
TEST(Gemm, ARowDoesNotDependOnTheSizeOfTheTiles) {
  constexpr int64_t kRows = 2000, kN = 256, kK = 64;
  Matrix<float> a(kRows, kK, 1), b(kN, kK, 2), whole(kRows, kN, 3), part(100, kN, 3);
  gemm({.c = whole.tensor, .a = a.tensor, .b = b.tensor, .transpose_b = true});
  gemm({.c = part.tensor, .a = a.tensor.row_range(1234, 1334), .b = b.tensor, .transpose_b = true});
  EXPECT_EQ(0, std::memcmp(part.values.data(), &whole.values[1234 * kN], 100 * kN * sizeof(float)));
}

// Pairs of bf16 are added in another order than f32 values, so the bits are equal only where they
// are widened.
TEST(Gemm, Bf16OperandsGiveTheProductOfTheirF32Values) {
  Matrix<bf16> a(70, 2100, 1), b(50, 2100, 2);
  Matrix<float> c(70, 50, 3), wide_c(70, 50, 4);
  std::vector<float> wide_a = cast<float>(widen(a.values)), wide_b = cast<float>(widen(b.values));
  gemm({.c = c.tensor, .a = a.tensor, .b = b.tensor, .transpose_b = true});
  gemm({.c = wide_c.tensor,
        .a = test::view(wide_a, {70, 2100}),
        .b = test::view(wide_b, {50, 2100}),
        .transpose_b = true});
  EXPECT_LT(test::relative_error(visible(c), visible(wide_c)), kF32);
  EXPECT_TRUE(multiplies_bf16() || same_bits(c.values, wide_c.values));
}

TEST(Gemm, AddsUpSeveralProducts) {
  for (int64_t m : {5, 300}) {
    Matrix<float> a1(m, 40, 1), b1(40, 70, 2), a2(m, 16, 3, 2), b2(16, 70, 4), a3(m, 7, 5),
        b3(7, 70, 6);
    Matrix<float> together(m, 70, 7), apart(m, 70, 7);
    const GemmTerm more[] = {{a2.tensor, b2.tensor}, {a3.tensor, b3.tensor}};
    gemm({.c = together.tensor, .a = a1.tensor, .b = b1.tensor, .more = more});
    gemm({.c = apart.tensor, .a = a1.tensor, .b = b1.tensor});
    for (const auto& [a, b] : more) gemm({.c = apart.tensor, .a = a, .b = b, .accumulate = true});
    EXPECT_TRUE(same_bits(together.values, apart.values)) << m;
  }
}

// Experts get other numbers of tokens in every step: once two counts have been seen, no count needs
// a new primitive.
TEST(Gemm, MakesNoPrimitiveForAnotherNumberOfRowsOrTerms) {
  const auto products = [](int64_t tokens) {
    Matrix<float> x(tokens, 48, 1), w(80, 48, 2), y(tokens, 80, 3), dw(80, 48, 4);
    gemm({.c = y.tensor, .a = x.tensor, .b = w.tensor, .transpose_b = true});
    gemm({.c = dw.tensor, .a = y.tensor, .b = x.tensor, .transpose_a = true, .accumulate = true});
  };
  products(200);
  products(1300);
  const int64_t made = matmul_primitives_made();
  for (int64_t tokens : {1, 16, 33, 97, 250, 256, 999, 1025, 2000}) products(tokens);
  EXPECT_EQ(matmul_primitives_made(), made);
}

TEST(GemmBatch, GivesTheBitsOfEachProductAlone) {
  std::vector<Matrix<float>> a, b, batch, alone;
  std::vector<Gemm> products;
  const int64_t rows[] = {7, 0, 130, 1, 250};
  for (int64_t i = 0; i < 5; ++i) {
    a.emplace_back(rows[i], 60, 10 + i);
    b.emplace_back(140, 60, 20 + i);
    batch.emplace_back(rows[i], 140, 30);
    alone.emplace_back(rows[i], 140, 30);
  }
  for (int64_t i = 0; i < 5; ++i) {
    Gemm g{.c = batch[i].tensor, .a = a[i].tensor, .b = b[i].tensor, .transpose_b = true};
    products.push_back(g);
    g.c = alone[i].tensor;
    gemm(g);
  }
  gemm_batch(products);
  for (int64_t i = 0; i < 5; ++i) EXPECT_TRUE(same_bits(batch[i].values, alone[i].values));
}

TEST(GemmBatch, ReportsTheProductThatDoesNotFit) {
  Matrix<float> a(3, 8, 1), b(8, 4, 2), c(3, 4, 3);
  const Gemm good{.c = c.tensor, .a = a.tensor, .b = b.tensor};
  const Gemm bad{.c = c.tensor, .a = b.tensor, .b = a.tensor};
  EXPECT_THROW(gemm_batch(std::vector{good, bad}), ContractError);
}

}  // namespace
}  // namespace zaya
