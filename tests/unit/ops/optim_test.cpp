#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/threads.h"
#include "ops/optim/adamw.h"
#include "ops/optim/adamw_reference.h"
#include "ops/optim/muon.h"
#include "ops/optim/muon_reference.h"
#include "ops/optim/sum_squares.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::relative_error;
using test::view;
using test::widen;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST(SumSquares, IsExactToDoubleAtEveryLengthAndMisalignment) {
  Context ctx;
  auto x = cast<float>(random_values(100, 1));
  for (int64_t n = 0; n <= 40; ++n) {
    for (int64_t offset : {0, 1, 3}) {
      double expected = 0;
      for (int64_t i = 0; i < n; ++i)
        expected += static_cast<double>(x[offset + i]) * x[offset + i];
      // Only the order of the additions differs: a few units of 2^-53.
      EXPECT_NEAR(sum_squares(ctx, Tensor(x.data() + offset, DType::f32, {n})), expected,
                  1e-14 * expected);
    }
  }
}

TEST(SumSquares, HoldsSquaresThatOverflowAFloat) {
  Context ctx;
  std::vector<float> x{1e30f, 1e30f};
  EXPECT_NEAR(sum_squares(ctx, view(x, {2})), 2e60, 1e54);  // 1e30 is rounded to a float
}

TEST(SumSquares, CarriesWhatIsNotFiniteFromAnyPlace) {
  Context ctx;
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (int64_t place : {0, 7, 16383, 16384, 39999}) {
      std::vector<float> x(40000, 1.0f);
      x[place] = bad;
      EXPECT_FALSE(std::isfinite(sum_squares(ctx, view(x, {40000}))));
    }
  }
}

TEST(SumSquares, DoesNotDependOnTheNumberOfThreads) {
  Context ctx;
  auto x = cast<float>(random_values(100001, 1));
  set_thread_count(1);
  const double one = sum_squares(ctx, view(x, {100001}));
  set_thread_count(2);
  EXPECT_EQ(one, sum_squares(ctx, view(x, {100001})));
  set_thread_count(0);
}

struct AdamWState {
  std::vector<float> w, m, v, g;
  explicit AdamWState(int64_t n)
      : w(cast<float>(random_values(n, 1))),
        m(cast<float>(random_values(n, 2, 0.1))),
        v(cast<float>(random_values(n, 3, 0.1))),
        g(cast<float>(random_values(n, 4))) {
    for (float& x : v) x = std::abs(x);
  }
  void update(int64_t offset, const AdamWSettings& settings) {
    Context ctx;
    const auto at = [&](std::vector<float>& x) {
      return Tensor(x.data() + offset, DType::f32, {static_cast<int64_t>(x.size()) - offset});
    };
    adamw_update(ctx, at(w), at(m), at(v), at(g), settings);
  }
};

TEST(AdamW, MatchesTheReferenceAtEveryLengthAndMisalignment) {
  for (int64_t n = 1; n <= 35; ++n) {
    for (int64_t offset : {0, 1, 3}) {
      for (int64_t step : {1, 2, 1000}) {
        const AdamWSettings settings{.learning_rate = 0.1f,
                                     .eps = 1e-3f,
                                     .weight_decay = 0.2f,
                                     .gradient_scale = 0.7f,
                                     .step = step};
        AdamWState state(n + offset);
        auto w = widen(state.w), m = widen(state.m), v = widen(state.v), g = widen(state.g);
        reference::adamw_update(&w[offset], &m[offset], &v[offset], &g[offset], n, settings);
        state.update(offset, settings);
        // A dozen fp32 roundings; 1 - beta in fp32 is right to 1e-6.
        EXPECT_LT(relative_error(widen(state.w), w), 2e-6);
        EXPECT_LT(relative_error(widen(state.m), m), 2e-6);
        EXPECT_LT(relative_error(widen(state.v), v), 2e-6);
      }
    }
  }
}

TEST(AdamW, TheFirstStepFromNothingIsTheLearningRate) {
  AdamWState state(5);
  state.m.assign(5, 0.0f);
  state.v.assign(5, 0.0f);
  const auto before = state.w;
  state.update(0, {.learning_rate = 0.01f, .step = 1});
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(before[i] - state.w[i], std::copysign(0.01, state.g[i]), 1e-6);
  }
}

TEST(AdamW, AZeroGradientOnlyDecays) {
  AdamWState state(5);
  for (auto* x : {&state.m, &state.v, &state.g}) x->assign(5, 0.0f);
  const auto before = state.w;
  state.update(0, {.learning_rate = 0.5f, .weight_decay = 0.5f, .step = 1});
  for (size_t i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(state.w[i], 0.75f * before[i]);
}

TEST(AdamW, DoesNotDependOnTheNumberOfThreads) {
  AdamWState one(50000), two = one;
  set_thread_count(1);
  one.update(0, {.learning_rate = 0.1f});
  set_thread_count(2);
  two.update(0, {.learning_rate = 0.1f});
  set_thread_count(0);
  EXPECT_TRUE(same_bits(one.w, two.w) && same_bits(one.m, two.m) && same_bits(one.v, two.v));
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

// Legend of the shapes: square, wide, tall, one row, one column, more than one strip of the
// symmetric products (64) and of the blocks that mirror them (32).
constexpr int64_t kShapes[][2] = {{8, 8}, {12, 40}, {40, 12}, {1, 9}, {9, 1}, {70, 100}, {100, 70}};

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

TEST(NewtonSchulz, ZeroStaysZero) {
  Context ctx;
  std::vector<float> x(6 * 9), zeros(6 * 9);
  newton_schulz(ctx, view(x, {6, 9}), view(x, {6, 9}));
  EXPECT_EQ(x, zeros);
}

struct MuonState {
  int64_t rows, columns;
  std::vector<float> w, m, g;
  MuonState(int64_t rows, int64_t columns, uint64_t seed)
      : rows(rows),
        columns(columns),
        w(cast<float>(random_values(rows * columns, seed))),
        m(cast<float>(random_values(rows * columns, seed + 1))),
        g(cast<float>(random_values(rows * columns, seed + 2))) {}
  MuonMatrix matrix() {
    return {view(w, {rows, columns}), view(m, {rows, columns}), view(g, {rows, columns})};
  }
};

TEST(Muon, MatchesTheReference) {
  Context ctx;
  for (const auto& [rows, columns] : kShapes) {
    for (bool nesterov : {true, false}) {
      MuonState state(rows, columns, 1);
      const MuonSettings settings{.learning_rate = 0.1f,
                                  .momentum = 0.9f,
                                  .nesterov = nesterov,
                                  .weight_decay = 0.3f,
                                  .gradient_scale = 0.7f};
      auto w = widen(state.w), m = widen(state.m);
      reference::muon_update(w, m, widen(state.g), rows, columns, settings);
      const std::vector matrices{state.matrix()};
      muon_update(ctx, matrices, settings);
      EXPECT_LT(relative_error(widen(state.w), w), 1e-5);  // the orthogonal part is a small addend
      EXPECT_LT(relative_error(widen(state.m), m), 1e-6);
    }
  }
}

TEST(Muon, AZeroGradientOnlyDecays) {
  Context ctx;
  MuonState state(6, 9, 1);
  state.m.assign(54, 0.0f);
  state.g.assign(54, 0.0f);
  const auto before = state.w;
  const std::vector matrices{state.matrix()};
  muon_update(ctx, matrices, {.learning_rate = 0.5f, .weight_decay = 0.5f});
  for (size_t i = 0; i < 54; ++i) EXPECT_FLOAT_EQ(state.w[i], 0.75f * before[i]);
}

// Weights after one step of eight matrices of different sizes, one of them much larger.
std::vector<float> update_list(int threads, bool together) {
  Context ctx;
  std::vector<MuonState> states;
  for (int64_t i = 0; i < 7; ++i) states.emplace_back(20 + 15 * i, 70, 200 + 10 * i);
  states.emplace(states.begin() + 3, 200, 260, 100);
  std::vector<MuonMatrix> matrices;
  for (auto& s : states) matrices.push_back(s.matrix());
  set_thread_count(threads);
  if (together) muon_update(ctx, matrices, {.learning_rate = 0.1f});
  if (!together) {
    for (const auto& m : matrices) muon_update(ctx, {&m, 1}, {.learning_rate = 0.1f});
  }
  set_thread_count(0);
  std::vector<float> all;
  for (const auto& s : states) all.insert(all.end(), s.w.begin(), s.w.end());
  return all;
}

TEST(Muon, DoesNotDependOnTheNumberOfThreads) {
  EXPECT_TRUE(same_bits(update_list(1, true), update_list(2, true)));
}

TEST(Muon, AMatrixDoesNotDependOnTheOthers) {
  EXPECT_TRUE(same_bits(update_list(2, true), update_list(2, false)));
}

TEST(Muon, RefusesShapesThatDiffer) {
  Context ctx;
  MuonState a(4, 6, 1), b(6, 4, 1);
  MuonMatrix mixed = a.matrix();
  mixed.gradient = b.matrix().gradient;
  EXPECT_THROW(muon_update(ctx, {&mixed, 1}, {}), ContractError);
}

}  // namespace
}  // namespace zaya
