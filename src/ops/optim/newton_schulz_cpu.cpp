// Legend: X [rows, columns]; S the smaller side, L the larger; G, P, Q, T [S, S].
//
// A step is X <- P X with P = a I + b G + c G^2 and G = X X' (X <- X P with G = X' X where X is
// tall). Two ways to take five of them:
//
// Directly: G from X, P, and X once more, each time: 5 (1.5 S^2 L + 0.5 S^3) multiplications, as G
// and G^2 are symmetric and computed by half.
//
// On the Gram matrix: the next G is P G P and the product of the steps so far is Q <- P Q. All are
// polynomials of the first G, so they commute and every product is symmetric, four halves a step.
// X is read twice: 1.5 S^2 L + 8.5 S^3 multiplications.
//
// What the second costs in accuracy: rounding G, by 6e-8 of its largest eigenvalue, drowns what
// singular values below 2e-4 of the largest left in it, and can make an eigenvalue negative. Such
// an error grows by a^2 = 12 a step, to 1e-3 in the last G. Near zero P hardly moves by that much,
// and what Q multiplies in the end is X itself. Measured against double, as Frobenius norms of the
// difference over that of the result, here / with three plain products a step, both in f32:
//   random 512 x 1024             4e-6 / 3e-6        rank S / 4                   8e-5 / 1e-5
//   falling to 1e-2 ... 1e-8      5e-5 / 4e-6        repeated rows                4e-5 / 2e-6
//   one of 1, the others 1e-3     5e-5 / 6e-7        rank 1                       5e-4 / 2e-4
// and no singular value is off by more than 4e-4, where the iteration leaves them between 0.68 and
// 1.2. Taking G anew from X after three steps would bring all but the last near the plain form, for
// 1.5 S^2 (L - S) more multiplications; nothing here needs it.
//
// In bf16 only directly: an error of 2e-3 in G, growing by 12 a step, made singular values of 100
// and more. And as X <- a X + (b G + c G^2) X with a X in f32: where X is small a X is all there
// is, and rounding it, or P, or keeping X in bf16 as is usual, leaves errors of X's large values
// there, which grow by a = 3.4 a step. Only factors of products are rounded. Measured against
// double as above, here / with X in bf16 and P X as usual, 128 x 256:
//   random                        2e-2 / 1e-2        rank S / 4                   2e-2 / 1e-1
//   falling to 1e-2               1e-2 / 2e-2        rank 1                       7e-3 / 1
//   falling to 1e-6               8e-3 / 9e-2        one of 1, the others 1e-3    1e-3 / 1e-1
// with singular values off by up to 0.04 here. Nearly diagonal matrices of equal singular values
// are the worst (6e-2 / 4e-2, and 0.11): their rounding errors are alike, and the steps do not
// contract.

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/cpu/gemm.h"
#include "backend/cpu/instruction_set.h"
#include "ops/elementwise/elementwise.h"
#include "ops/optim/newton_schulz.h"
#include "ops/optim/sum_squares.h"
#include "ops/optim/symmetric.h"

namespace zaya {
namespace {

constexpr int kSteps = 5;
constexpr Quadratic kCoefficients = {3.4445f, -4.7750f, 2.0315f};
// Keeps a matrix of zeros at zero, and is nothing beside any other norm.
constexpr double kTinyNorm = 1e-30;

struct Sides {
  int64_t small, large;
  Sides(int64_t rows, int64_t columns)
      : small(std::min(rows, columns)), large(std::max(rows, columns)) {}
  // Both ways take as many multiplications at L = S, where the direct one has fewer of them in
  // half products, which are less efficient than whole ones.
  // bf16 multiplications take half the time, and the Gram matrix is for f32 alone: 0.75 times 5
  // against 1.5 L + 8.5 S are equal at L = 3.2 S. In tiles they take so little that it never pays.
  bool on_gram_matrix(DType products) const {
    if (products == DType::f32) return 8 * large > 9 * small;
    return 5 * large > 16 * small && !has_bf16_tiles();
  }
};

// G is in m.g. The product of `steps` steps (an odd number) comes to be in m.q.
struct Matrices {
  Tensor q, g, p, t, next_q;
};
void steps_on_gram_matrix(Matrices m, int steps) {
  Tensor p = m.q;  // the first Q is P
  quadratic(p, m.g, kCoefficients);
  for (int step = 1; step < steps; ++step) {
    commuting_product(m.t, p, m.g);
    commuting_product(m.g, m.t, p);
    p = m.p;
    quadratic(p, m.g, kCoefficients);
    commuting_product(m.next_q, p, m.q);
    std::swap(m.q, m.next_q);
  }
}

int64_t floats_of(int64_t numbers, DType dtype) {
  return dtype == DType::bf16 ? (numbers + 1) / 2 : numbers;
}

// X, scaled to norm 1, becomes the result.
void steps_in_bf16(Context& ctx, const Tensor& x, float* scratch) {
  const bool tall = x.rows() > x.columns();
  const int64_t size = std::min(x.rows(), x.columns());
  const Tensor sums(scratch, DType::f32, {size, size});
  scratch += floats_of(sums.size(), DType::f32);
  const Tensor p(scratch, DType::bf16, {size, size});
  scratch += floats_of(p.size(), DType::bf16);
  const Tensor rounded(scratch, DType::bf16, x.shape);
  const auto [a, b, c] = kCoefficients;
  for (int step = 0; step < kSteps; ++step) {
    convert(ctx, rounded, x);
    gram_polynomial(p, sums, rounded, tall, b, c);
    scale(ctx, x, a);
    gemm({.c = x, .a = tall ? rounded : p, .b = tall ? p : rounded, .accumulate = true});
  }
}

}  // namespace

// On f32: Q, and room for what is dead when the next X is written, and for the next X. On bf16: the
// Gram matrix's sums, P and X rounded.
int64_t newton_schulz_scratch(int64_t rows, int64_t columns, DType products) {
  const Sides sides(rows, columns);
  const int64_t square = sides.small * sides.small;
  const bool on_gram_matrix = sides.on_gram_matrix(products);
  if (products == DType::bf16 && !on_gram_matrix)
    return square + floats_of(square, products) + floats_of(rows * columns, products);
  return square + std::max(rows * columns, (on_gram_matrix ? 4 : 1) * square);
}

double newton_schulz_multiplications(int64_t rows, int64_t columns, DType products) {
  const Sides sides(rows, columns);
  const double s = static_cast<double>(sides.small), l = static_cast<double>(sides.large);
  if (sides.on_gram_matrix(products)) return s * s * (1.5 * l + 8.5 * s);
  return kSteps * s * s * (1.5 * l + 0.5 * s) * (products == DType::bf16 ? 0.5 : 1);
}

float* newton_schulz_steps(Context& ctx, float* x_data, float* scratch, int64_t rows,
                           int64_t columns, DType products) {
  const bool tall = rows > columns;
  const Sides sides(rows, columns);
  const bool on_gram_matrix = sides.on_gram_matrix(products);
  const int64_t size = sides.small;
  const auto square = [&](int64_t i) {
    return Tensor(scratch + i * size * size, DType::f32, {size, size});
  };
  Matrices m{.q = square(0), .g = square(1), .p = {}, .t = {}, .next_q = {}};
  if (on_gram_matrix) m.p = square(2), m.t = square(3), m.next_q = square(4);
  Tensor x(x_data, DType::f32, {rows, columns});
  Tensor next(m.g.data, DType::f32, {rows, columns});  // over all squares but Q

  const double norm = std::sqrt(sum_squares(ctx, x));
  scale(ctx, x, static_cast<float>(1 / (norm + kTinyNorm)));
  if (products == DType::bf16 && !on_gram_matrix) {
    steps_in_bf16(ctx, x, scratch);
    return x.as<float>();
  }
  const int at_once = on_gram_matrix ? kSteps : 1;
  for (int step = 0; step < kSteps; step += at_once) {
    m.g.data = next.data;
    gram_product(m.g, x, tall);
    steps_on_gram_matrix(m, at_once);
    gemm({.c = next, .a = tall ? x : m.q, .b = tall ? m.q : x});
    std::swap(x, next);
  }
  return x.as<float>();
}

}  // namespace zaya
