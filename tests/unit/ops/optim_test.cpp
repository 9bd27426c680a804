#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "ops/optim/adamw.h"
#include "ops/optim/adamw_reference.h"
#include "ops/optim/muon.h"
#include "ops/optim/muon_reference.h"
#include "ops/optim/sum_squares.h"
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

// Square, wide, tall, one row, one column, more than one piece of the symmetric products (64).
constexpr int64_t kShapes[][2] = {{8, 8}, {12, 40}, {40, 12}, {1, 9}, {9, 1}, {70, 100}, {100, 70}};

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

TEST(Muon, InBf16IsNearTheOneInF32) {
  if (!multiplies_bf16()) GTEST_SKIP() << "this machine does not multiply bf16";
  Context ctx;
  for (const auto& [rows, columns] : kShapes) {
    MuonState f32(rows, columns, 1);
    f32.w.assign(f32.w.size(), 0.0f);  // what is left is the step itself
    MuonState bf16 = f32;
    MuonSettings settings{.learning_rate = 0.1f};
    const std::vector matrices{f32.matrix()}, rounded{bf16.matrix()};
    muon_update(ctx, matrices, settings);
    settings.products = DType::bf16;
    muon_update(ctx, rounded, settings);
    // Measured: up to 5e-2, of rounding by up to 2^-9 (newton_schulz_cpu.cpp).
    EXPECT_LT(relative_error(widen(bf16.w), widen(f32.w)), 8e-2) << rows << " x " << columns;
    EXPECT_TRUE(same_bits(bf16.m, f32.m));
  }
}

TEST(Muon, RefusesFormatsThatTheMachineDoesNotMultiply) {
  Context ctx;
  MuonState state(4, 6, 1);
  const std::vector matrices{state.matrix()};
  EXPECT_THROW(muon_update(ctx, matrices, {.products = DType::f16}), ContractError);
  if (!multiplies_bf16()) {
    EXPECT_THROW(muon_update(ctx, matrices, {.products = DType::bf16}), ContractError);
  }
}

// Weights after one step of eight matrices of different sizes, one of them much larger.
std::vector<float> update_list(int threads, bool together, DType products) {
  Context ctx;
  std::vector<MuonState> states;
  for (int64_t i = 0; i < 7; ++i) states.emplace_back(20 + 15 * i, 70, 200 + 10 * i);
  states.emplace(states.begin() + 3, 200, 260, 100);
  std::vector<MuonMatrix> matrices;
  for (auto& s : states) matrices.push_back(s.matrix());
  set_thread_count(threads);
  const MuonSettings settings{.learning_rate = 0.1f, .products = products};
  if (together) muon_update(ctx, matrices, settings);
  if (!together) {
    for (const auto& m : matrices) muon_update(ctx, {&m, 1}, settings);
  }
  set_thread_count(0);
  std::vector<float> all;
  for (const auto& s : states) all.insert(all.end(), s.w.begin(), s.w.end());
  return all;
}

TEST(Muon, DoesNotDependOnTheNumberOfThreads) {
  for (const DType d : product_formats())
    EXPECT_TRUE(same_bits(update_list(1, true, d), update_list(2, true, d)));
}

TEST(Muon, AMatrixDoesNotDependOnTheOthers) {
  for (const DType d : product_formats())
    EXPECT_TRUE(same_bits(update_list(2, true, d), update_list(2, false, d)));
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
