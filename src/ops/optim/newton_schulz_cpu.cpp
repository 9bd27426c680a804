// Legend: X [rows, columns]; S the smaller side, G and P [S, S].
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "backend/cpu/gemm.h"
#include "backend/cpu/threads.h"
#include "ops/elementwise/elementwise.h"
#include "ops/optim/newton_schulz.h"
#include "ops/optim/sum_squares.h"

namespace zaya {
namespace {

constexpr int kSteps = 5;
constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
// Keeps a matrix of zeros at zero, and is nothing beside any other norm.
constexpr double kTinyNorm = 1e-30;

// A symmetric product is computed at and below the diagonal only, in strips of rows that end where
// the diagonal does: 5/8 of the work at four strips, 17/32 at sixteen.
constexpr int64_t kMaxStrips = 16;
constexpr int64_t kMinStrip = 64;

// c [S, S] = x x^T (x [S, K]), or x^T x (x [K, S]) when x is tall: at and below the diagonal.
void lower_product(const Tensor& c, const Tensor& x, bool tall) {
  const int64_t size = c.rows();
  const int64_t strip = std::max(kMinStrip, (size + kMaxStrips * 16 - 1) / (kMaxStrips * 16) * 16);
  std::array<Gemm, kMaxStrips> strips;
  size_t count = 0;
  for (int64_t begin = 0; begin < size; begin += strip) {
    const int64_t end = std::min(size, begin + strip);
    Gemm& g = strips[count++];
    g.c = c.row_range(begin, end).column_range(0, end);
    g.a = tall ? x.column_range(begin, end) : x.row_range(begin, end);
    g.b = tall ? x.column_range(0, end) : x.row_range(0, end);
    g.transpose_a = tall;
    g.transpose_b = !tall;
  }
  gemm_batch(std::span(strips.data(), count));
}

// For all i >= j: c[i, j] and c[j, i] become f(i, j). In blocks, so that the transposed side is
// written while its cache lines are at hand. An item of work is one row of blocks and its mirror.
template <class F>
void fill_symmetric(float* c, int64_t size, F&& f) {
  constexpr int64_t kBlock = 32;
  parallel_ranges(size, kBlock, [&](int64_t i_begin, int64_t i_end) {
    for (int64_t j_begin = 0; j_begin < i_end; j_begin += kBlock) {
      for (int64_t i = i_begin; i < i_end; ++i) {
        const int64_t j_end = std::min(j_begin + kBlock, i + 1);
        for (int64_t j = j_begin; j < j_end; ++j) {
          const float value = f(i, j);
          c[i * size + j] = value;
          c[j * size + i] = value;
        }
      }
    }
  });
}

}  // namespace

int64_t newton_schulz_scratch(int64_t rows, int64_t columns) {
  const int64_t size = std::min(rows, columns);
  return rows * columns + 2 * size * size;
}

void newton_schulz_in_place(Context& ctx, float* x_data, float* scratch, int64_t rows,
                            int64_t columns) {
  const bool tall = rows > columns;
  const int64_t size = std::min(rows, columns);
  Tensor x(x_data, DType::f32, {rows, columns});
  Tensor next(scratch, DType::f32, {rows, columns});
  float* g = scratch + rows * columns;
  float* p = g + size * size;
  const Tensor gram(g, DType::f32, {size, size}), polynomial(p, DType::f32, {size, size});

  const double norm = std::sqrt(sum_squares(ctx, x));
  scale(ctx, x, static_cast<float>(1 / (norm + kTinyNorm)));
  for (int step = 0; step < kSteps; ++step) {
    lower_product(gram, x, tall);
    fill_symmetric(g, size, [&](int64_t i, int64_t j) { return g[i * size + j]; });
    lower_product(polynomial, gram, false);
    fill_symmetric(p, size, [&](int64_t i, int64_t j) {
      const float value = kB * g[i * size + j] + kC * p[i * size + j];
      return i == j ? kA + value : value;
    });
    // X (a + b G + c G^2) from the side that G belongs to.
    gemm({.c = next, .a = tall ? x : polynomial, .b = tall ? polynomial : x});
    std::swap(x, next);
  }
  if (x.data != x_data) convert(ctx, next, x);
}

}  // namespace zaya
