#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "ops/optim/muon.h"
#include "ops/optim/muon_reference.h"
#include "ops/optim/symmetric.h"
#include "support/oracle.h"
#include "support/product_formats.h"

namespace zaya {
namespace {

using test::cast;
using test::product_formats;
using test::random_values;
using test::relative_error;
using test::view;
using test::widen;

std::vector<double> transposed(const std::vector<double>& x, int64_t rows, int64_t columns) {
  std::vector<double> out(x.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[j * rows + i] = x[i * columns + j];
  }
  return out;
}

// x x' or, when tall, x' x.
std::vector<double> gram(const std::vector<double>& x, int64_t rows, int64_t columns) {
  const auto turned = transposed(x, rows, columns);
  return rows <= columns ? reference::product(x, turned, rows, columns, rows)
                         : reference::product(turned, x, columns, rows, columns);
}

bool is_symmetric(const std::vector<float>& c, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      if (c[i * size + j] != c[j * size + i]) return false;
    }
  }
  return true;
}

// Every size up to two blocks of the mirror (16) and a row more, and several pieces of the product
// (64 on the diagonal, 256 beside it).
std::vector<int64_t> sizes() {
  std::vector<int64_t> all{64, 65, 100, 128, 200, 330};
  for (int64_t size = 1; size <= 33; ++size) all.push_back(size);
  return all;
}

TEST(Symmetric, GramProductIsRightAndSymmetric) {
  for (const int64_t size : sizes()) {
    for (const bool tall : {false, true}) {
      const int64_t rows = tall ? 50 : size, columns = tall ? size : 50;
      auto x = cast<float>(random_values(size * 50, 1));
      std::vector<float> c(size * size, NAN);
      gram_product(view(c, {size, size}), view(x, {rows, columns}), tall);
      const auto wide = tall ? transposed(widen(x), rows, columns) : widen(x);
      const auto expected = reference::product(wide, transposed(wide, size, 50), size, 50, size);
      EXPECT_LT(relative_error(widen(c), expected), 1e-6) << size;  // sums of 50 terms
      EXPECT_TRUE(is_symmetric(c, size)) << size;
    }
  }
}

TEST(Symmetric, QuadraticAndItsProductWithTheMatrixAreRightAndSymmetric) {
  for (const int64_t size : sizes()) {
    auto g = cast<float>(gram(random_values(size * size, 2), size, size));
    std::vector<float> p(size * size, NAN), t = p;
    quadratic(view(p, {size, size}), view(g, {size, size}), {.a = 3, .b = 2, .c = -0.5});
    commuting_product(view(t, {size, size}), view(p, {size, size}), view(g, {size, size}));
    auto expected = reference::product(widen(g), widen(g), size, size, size);
    for (int64_t i = 0; i < size * size; ++i) {
      expected[i] = 2.0 * g[i] - 0.5 * expected[i] + (i % (size + 1) == 0 ? 3 : 0);
    }
    const auto product = reference::product(expected, widen(g), size, size, size);
    // Sums of up to 330 terms; at size 1 two terms all but cancel.
    EXPECT_LT(relative_error(widen(p), expected), 1e-5) << size;
    EXPECT_LT(relative_error(widen(t), product), 1e-5) << size;
    EXPECT_TRUE(is_symmetric(p, size) && is_symmetric(t, size)) << size;
  }
}

std::vector<double> rounded(const std::vector<double>& x) { return widen(cast<bf16>(x)); }

TEST(Symmetric, GramPolynomialIsRightAndSymmetric) {
  for (const int64_t size : sizes()) {
    for (const bool tall : {false, true}) {
      // Whatever the size, g is near the identity, and b g + c g g does not cancel.
      const int64_t rows = tall ? 50 : size, columns = tall ? size : 50;
      auto x = cast<bf16>(random_values(size * 50, 3, 0.14));
      std::vector<float> sums(size * size, NAN);
      std::vector<bf16> p(size * size, bf16(NAN));
      gram_polynomial(view(p, {size, size}), view(sums, {size, size}), view(x, {rows, columns}),
                      tall, 3, 0.5);
      const auto wide = tall ? transposed(widen(x), rows, columns) : widen(x);
      const auto g = reference::product(wide, transposed(wide, size, 50), size, 50, size);
      auto expected = reference::product(rounded(g), rounded(g), size, size, size);
      for (int64_t i = 0; i < size * size; ++i) expected[i] = 3 * g[i] + 0.5 * expected[i];
      // Rounded once, by at most 2^-9; now and then g is rounded the other way than in double.
      EXPECT_LT(relative_error(widen(p), expected), 4e-3) << size;
      EXPECT_TRUE(is_symmetric(cast<float>(widen(p)), size)) << size;
    }
  }
}

// A rows x columns matrix with the given singular values, between two reflections.
std::vector<double> with_singular_values(const std::vector<double>& singular, int64_t rows,
                                         int64_t columns) {
  const auto u = random_values(rows, 1), v = random_values(columns, 2);
  double uu = 0, vv = 0;
  for (double x : u) uu += x * x;
  for (double x : v) vv += x * x;
  std::vector<double> out(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      for (size_t k = 0; k < singular.size(); ++k) {
        const int64_t s = static_cast<int64_t>(k);
        const double left = (i == s) - 2 * u[i] * u[s] / uu;
        const double right = (j == s) - 2 * v[j] * v[s] / vv;
        out[i * columns + j] += left * singular[k] * right;
      }
    }
  }
  return out;
}

// Square, wide, tall, one row, one column; and with more than one piece of the symmetric products
// (64), whole and cut blocks of what mirrors them (16), on the Gram matrix and directly (where
// nearly square).
constexpr int64_t kShapes[][2] = {{8, 8},    {12, 40},  {40, 12},   {1, 9},     {9, 1},
                                  {70, 100}, {100, 70}, {100, 108}, {108, 100}, {144, 144}};

TEST(NewtonSchulz, BringsTheSingularValuesNearOneAndKeepsTheirVectors) {
  Context ctx;
  for (const auto& [rows, columns] : kShapes) {
    std::vector<double> singular(std::min(rows, columns)), shaped(singular.size());
    double squares = 0;
    for (size_t i = 0; i < singular.size(); ++i) {
      singular[i] = 1 + static_cast<double>(i % 7);
      squares += singular[i] * singular[i];
    }
    for (size_t i = 0; i < singular.size(); ++i) {
      double s = singular[i] / std::sqrt(squares);
      for (int step = 0; step < 5; ++step) {
        s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
      }
      shaped[i] = s;
      EXPECT_GT(s, 0.6);
      EXPECT_LT(s, 1.3);
    }
    auto x = cast<float>(with_singular_values(singular, rows, columns));
    std::vector<float> out(x.size());
    newton_schulz(ctx, view(out, {rows, columns}), view(x, {rows, columns}));
    // Five steps, each of which grows a small singular value's rounding with the value itself.
    EXPECT_LT(relative_error(widen(out), with_singular_values(shaped, rows, columns)), 1e-5);
  }
}

TEST(NewtonSchulz, MatchesTheReferenceOnRandomMatrices) {
  Context ctx;
  for (const auto& [rows, columns] : kShapes) {
    auto x = cast<float>(random_values(rows * columns, 5, 1e-4));
    const auto expected = reference::newton_schulz(widen(x), rows, columns);
    newton_schulz(ctx, view(x, {rows, columns}), view(x, {rows, columns}));  // in place
    // As above, and a square random matrix has singular values near zero.
    EXPECT_LT(relative_error(widen(x), expected), 1e-4) << rows << " x " << columns;
  }
}

struct Spectrum {
  const char* name;
  double (*singular)(double place);  // place: from 0, the first singular value, to 1
};
constexpr Spectrum kSpectra[] = {
    {"equal", [](double) { return 1.0; }},
    {"falling to 1e-2", [](double place) { return std::pow(10, -2 * place); }},
    {"falling to 1e-6", [](double place) { return std::pow(10, -6 * place); }},
    {"half of them 1e-6", [](double place) { return place < 0.5 ? 1.0 : 1e-6; }},
    {"a quarter of the rank", [](double place) { return place < 0.25 ? 1.0 : 0.0; }},
    {"rank one", [](double place) { return place == 0 ? 1.0 : 0.0; }},
    {"one that stands out", [](double place) { return place == 0 ? 1.0 : 1e-3; }},
};

std::vector<float> with_spectrum(const Spectrum& spectrum, int64_t rows, int64_t columns) {
  std::vector<double> singular(std::min(rows, columns));
  for (size_t i = 0; i < singular.size(); ++i)
    singular[i] = spectrum.singular(static_cast<double>(i) / (singular.size() - 1.0));
  return cast<float>(with_singular_values(singular, rows, columns));
}

// Wide, tall and square.
constexpr int64_t kSpectrumShapes[][2] = {{96, 160}, {160, 96}, {96, 96}};

// check(result, result in double, rows, columns) for a matrix of each spectrum and shape.
template <class F>
void for_each_spectrum(DType products, F&& check) {
  Context ctx;
  for (const auto& [rows, columns] : kSpectrumShapes) {
    for (const Spectrum& spectrum : kSpectra) {
      SCOPED_TRACE(testing::Message() << spectrum.name << ", " << rows << " x " << columns);
      auto x = with_spectrum(spectrum, rows, columns);
      const auto expected = reference::newton_schulz(widen(x), rows, columns);
      newton_schulz(ctx, view(x, {rows, columns}), view(x, {rows, columns}), products);
      check(widen(x), expected, rows, columns);
    }
  }
}

// Rounding the Gram matrix may make small eigenvalues negative: here they have to do no harm.
TEST(NewtonSchulz, IsAsOrthogonalAsInDoubleWhateverTheSingularValues) {
  for_each_spectrum(DType::f32, [](const auto& x, const auto& expected, int64_t rows, int64_t n) {
    // Measured: up to 2e-4 (newton_schulz_cpu.cpp says where it comes from).
    EXPECT_LT(relative_error(x, expected), 1e-3);
    // No squared singular value is further off than this norm of the difference (Weyl); they lie
    // between 0.4 and 1.5 where they converge. Measured: up to 5e-4.
    const auto ours = gram(x, rows, n), theirs = gram(expected, rows, n);
    double difference = 0;
    for (size_t i = 0; i < ours.size(); ++i) difference += std::pow(ours[i] - theirs[i], 2);
    EXPECT_LT(std::sqrt(difference), 2e-3);
  });
}

std::vector<float> orthogonalised(int64_t rows, int64_t columns, DType products) {
  Context ctx;
  auto x = cast<float>(random_values(rows * columns, 6));
  newton_schulz(ctx, view(x, {rows, columns}), view(x, {rows, columns}), products);
  return x;
}

TEST(NewtonSchulz, DoesNotDependOnTheNumberOfThreadsNorOnWhoCallsIt) {
  constexpr int64_t shapes[][2] = {{300, 400}, {400, 300}, {300, 300}, {130, 131}, {70, 1500}};
  for (const DType products : product_formats()) {
    for (const auto& [rows, columns] : shapes) {
      const auto run = [&, r = rows, c = columns] { return orthogonalised(r, c, products); };
      set_thread_count(1);
      const auto one = run();
      set_thread_count(2);
      const auto two = run();
      std::vector<float> inside[2];
      parallel_for(2, [&](int64_t i) { inside[i] = run(); });
      set_thread_count(0);
      for (const auto& other : {two, inside[0], inside[1]})
        EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size() * sizeof(float)), 0) << rows;
    }
  }
}

TEST(NewtonSchulz, ZeroStaysZero) {
  Context ctx;
  for (const DType products : product_formats()) {
    std::vector<float> x(6 * 9), zeros(6 * 9);
    newton_schulz(ctx, view(x, {6, 9}), view(x, {6, 9}), products);
    EXPECT_EQ(x, zeros);
  }
}

TEST(NewtonSchulz, HidesNothingThatIsNotFinite) {
  Context ctx;
  for (const DType products : product_formats()) {
    for (const float bad : {NAN, INFINITY}) {
      auto x = cast<float>(random_values(20 * 30, 1));
      x[77] = bad;
      newton_schulz(ctx, view(x, {20, 30}), view(x, {20, 30}), products);
      EXPECT_TRUE(std::any_of(x.begin(), x.end(), [](float v) { return std::isnan(v); }));
    }
  }
}

class NewtonSchulzInBf16 : public testing::Test {
 protected:
  void SetUp() override {
    if (!multiplies_bf16()) GTEST_SKIP() << "this machine does not multiply bf16";
  }
};

// Ascending, by one-sided Jacobi rotations of the smaller side's vectors.
std::vector<double> singular_values(const std::vector<double>& x, int64_t rows, int64_t columns) {
  auto v = rows <= columns ? x : transposed(x, rows, columns);
  const int64_t size = std::min(rows, columns), length = std::max(rows, columns);
  const auto dot = [&](int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < length; ++k) sum += v[i * length + k] * v[j * length + k];
    return sum;
  };
  const auto rotate = [&](int64_t i, int64_t j) {
    const double between = dot(i, j);
    if (between == 0) return;
    const double zeta = (dot(j, j) - dot(i, i)) / (2 * between);
    const double tangent = std::copysign(1 / (std::abs(zeta) + std::hypot(1, zeta)), zeta);
    const double cosine = 1 / std::hypot(1, tangent), sine = cosine * tangent;
    for (int64_t k = 0; k < length; ++k) {
      double &a = v[i * length + k], &b = v[j * length + k];
      const double old = a;
      a = cosine * old - sine * b;
      b = sine * old + cosine * b;
    }
  };
  for (int sweep = 0; sweep < 8; ++sweep) {
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t j = i + 1; j < size; ++j) rotate(i, j);
    }
  }
  std::vector<double> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = std::sqrt(dot(i, i));
  std::sort(values.begin(), values.end());
  return values;
}

TEST(NewtonSchulz, TheTestsOwnSingularValuesAreRight) {
  const auto values = singular_values(with_singular_values({3, 0, 2, 1e-3}, 6, 4), 6, 4);
  const std::vector<double> expected{0, 1e-3, 2, 3};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(values[i], expected[i], 1e-12);
}

TEST_F(NewtonSchulzInBf16, KeepsTheSingularValuesInTheBandAndTheirVectors) {
  Context ctx;
  for (const auto& [rows, columns] : kShapes) {
    std::vector<double> singular(std::min(rows, columns));
    for (size_t i = 0; i < singular.size(); ++i) singular[i] = 1 + static_cast<double>(i % 7);
    auto x = cast<float>(with_singular_values(singular, rows, columns));
    const auto expected = reference::newton_schulz(widen(x), rows, columns);
    newton_schulz(ctx, view(x, {rows, columns}), view(x, {rows, columns}), DType::bf16);
    // Factors are rounded by up to 2^-9 in five steps, where a X + (P - a) X all but cancels
    // (3.44 - 2.7 for singular values of one). Measured: up to 5e-2.
    EXPECT_LT(relative_error(widen(x), expected), 8e-2) << rows << " x " << columns;
    const auto values = singular_values(widen(x), rows, columns);
    EXPECT_GT(values.front(), 0.62) << rows << " x " << columns;
    EXPECT_LT(values.back(), 1.25) << rows << " x " << columns;
  }
}

TEST_F(NewtonSchulzInBf16, IsNearTheResultInDoubleWhateverTheSingularValues) {
  for_each_spectrum(DType::bf16, [](const auto& x, const auto& expected, int64_t rows, int64_t n) {
    // Measured: up to 6e-2. These matrices are nearly diagonal and have many equal singular
    // values, so that their rounding errors are alike and steer one way.
    EXPECT_LT(relative_error(x, expected), 1e-1);
    const auto ours = singular_values(x, rows, n), theirs = singular_values(expected, rows, n);
    for (size_t i = 0; i < ours.size(); ++i) {
      // Measured: up to 0.11, inside the band that the steps bring singular values into.
      EXPECT_NEAR(ours[i], theirs[i], 0.15);
      if (theirs[i] > 0.65) {
        EXPECT_GT(ours[i], 0.62);
      }
      EXPECT_LT(ours[i], 1.25);
    }
  });
}

// What rounding large singular values leaves where there are none grows fastest.
TEST_F(NewtonSchulzInBf16, KeepsTheRank) {
  Context ctx;
  for (const auto& [rows, columns] : kSpectrumShapes) {
    for (const int64_t rank : {1, 4, 24}) {
      const auto left = random_values(rows * rank, 8), right = random_values(rank * columns, 9);
      auto x = cast<float>(reference::product(left, right, rows, rank, columns));
      const auto expected = reference::newton_schulz(widen(x), rows, columns);
      newton_schulz(ctx, view(x, {rows, columns}), view(x, {rows, columns}), DType::bf16);
      // Measured: up to 1e-2. With X itself in bf16: 0.2 to 1.1.
      EXPECT_LT(relative_error(widen(x), expected), 5e-2) << rank << ", " << rows;
      const auto values = singular_values(widen(x), rows, columns);
      // Measured: up to 3e-4. With X itself in bf16: 0.2 to 0.3.
      EXPECT_LT(values[values.size() - 1 - rank], 1e-2) << rank << ", " << rows;
    }
  }
}

TEST_F(NewtonSchulzInBf16, OfLongMatricesIsThatOfF32WhereTilesDoNotMultiply) {
  const auto bf16 = orthogonalised(20, 80, DType::bf16);
  EXPECT_EQ(bf16 == orthogonalised(20, 80, DType::f32), !has_bf16_tiles());
  EXPECT_NE(orthogonalised(20, 60, DType::bf16), orthogonalised(20, 60, DType::f32));
}

TEST(NewtonSchulz, RefusesFormatsThatTheMachineDoesNotMultiply) {
  EXPECT_THROW(orthogonalised(6, 9, DType::f16), ContractError);
  if (!multiplies_bf16()) {
    EXPECT_THROW(orthogonalised(6, 9, DType::bf16), ContractError);
  }
}

}  // namespace
}  // namespace zaya
