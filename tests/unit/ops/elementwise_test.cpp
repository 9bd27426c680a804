#include "ops/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/threads.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;

// Past two vectors of the widest instruction set, from every start a vector load may dislike.
constexpr int64_t kMaxLength = 35;
constexpr int64_t kMaxOffset = 3;

TEST(Elementwise, ConvertRoundsAsBf16DoesAtEveryLengthAndMisalignment) {
  Context ctx;
  auto source = cast<float>(random_values(kMaxLength + kMaxOffset, 1));
  source[2] = std::numeric_limits<float>::quiet_NaN();
  source[3] = -std::numeric_limits<float>::infinity();
  source[4] = 1.00390625f;  // halfway between two bf16 values, the lower one even
  for (int64_t n = 1; n <= kMaxLength; ++n) {
    for (int64_t offset = 0; offset <= kMaxOffset; ++offset) {
      std::vector<bf16> narrow(n + offset + 1, bf16(7.0f));
      std::vector<float> wide(n + offset + 1, 7.0f);
      convert(ctx, Tensor(narrow.data() + offset, DType::bf16, {n}),
              Tensor(source.data() + offset, DType::f32, {n}));
      convert(ctx, Tensor(wide.data() + offset, DType::f32, {n}),
              Tensor(narrow.data() + offset, DType::bf16, {n}));
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_EQ(narrow[offset + i].bits, bf16(source[offset + i]).bits);
        EXPECT_EQ(bf16(wide[offset + i]).bits, narrow[offset + i].bits);
      }
      EXPECT_EQ(static_cast<float>(narrow[n + offset]), 7.0f);
      EXPECT_EQ(wide[n + offset], 7.0f);
    }
  }
}

TEST(Elementwise, ConvertTakesStridedRows) {
  Context ctx;
  auto source = cast<float>(random_values(5 * 9, 1));
  std::vector<bf16> target(5 * 6, bf16(7.0f));
  const Tensor from = view(source, {5, 9}).column_range(2, 6);
  const Tensor to = view(target, {5, 6}).column_range(1, 5);
  convert(ctx, to, from);
  for (int64_t r = 0; r < 5; ++r) {
    EXPECT_EQ(static_cast<float>(target[r * 6]), 7.0f);
    EXPECT_EQ(static_cast<float>(target[r * 6 + 5]), 7.0f);
    for (int64_t c = 0; c < 4; ++c) {
      EXPECT_EQ(target[r * 6 + 1 + c].bits, bf16(source[r * 9 + 2 + c]).bits);
    }
  }
}

TEST(Elementwise, ConvertCopiesEqualFormats) {
  Context ctx;
  std::vector<int32_t> source{1, 2, 3, 4, 5, 6}, target(6);
  convert(ctx, view(target, {6}), view(source, {2, 3}));
  EXPECT_EQ(target, source);
}

TEST(Elementwise, ConvertRefusesOtherPairsOfFormats) {
  Context ctx;
  std::vector<int32_t> source(4);
  std::vector<float> target(4);
  EXPECT_THROW(convert(ctx, view(target, {4}), view(source, {4})), ContractError);
}

TEST(Elementwise, FillZeroClearsNoMoreThanItsRows) {
  Context ctx;
  std::vector<float> values(4 * 5, 3.0f);
  fill_zero(ctx, view(values, {4, 5}).column_range(1, 4));
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(values[i], i % 5 == 0 || i % 5 == 4 ? 3.0f : 0.0f);
  std::vector<float> big(100000, 3.0f);
  fill_zero(ctx, view(big, {100000}));
  EXPECT_EQ(std::count(big.begin(), big.end(), 0.0f), 100000);
}

TEST(Elementwise, AddAndScaleAreExactAtEveryLengthAndMisalignment) {
  Context ctx;
  const auto x = cast<float>(random_values(kMaxLength + kMaxOffset, 1));
  const auto narrow = cast<bf16>(random_values(kMaxLength + kMaxOffset, 2));
  const auto y = cast<float>(random_values(kMaxLength + kMaxOffset, 3));
  for (int64_t n = 1; n <= kMaxLength; ++n) {
    for (int64_t offset = 0; offset <= kMaxOffset; ++offset) {
      auto sum = y, narrow_sum = y, scaled = y;
      const auto at = [&](auto& values) {
        using T = std::remove_cvref_t<decltype(values[0])>;
        return Tensor(const_cast<T*>(values.data()) + offset, DTypeOf<T>::value, {n});
      };
      add(ctx, at(sum), at(x));
      add(ctx, at(narrow_sum), at(narrow));
      scale(ctx, at(scaled), 0.3f);
      for (int64_t i = 0; i < kMaxLength + kMaxOffset; ++i) {
        const bool inside = i >= offset && i < offset + n;
        EXPECT_EQ(sum[i], inside ? y[i] + x[i] : y[i]);
        EXPECT_EQ(narrow_sum[i], inside ? y[i] + static_cast<float>(narrow[i]) : y[i]);
        EXPECT_EQ(scaled[i], inside ? y[i] * 0.3f : y[i]);
      }
    }
  }
}

TEST(Elementwise, NormalNumbersHaveTheirMomentsAndNeighboursAreUnrelated) {
  Context ctx;
  constexpr int64_t kN = 200000;
  std::vector<float> x(kN);
  fill_normal(ctx, view(x, {kN}), 42, 1.0f, 2.0f);
  double mean = 0, variance = 0, fourth = 0, correlation = 0, of_squares = 0;
  for (float v : x) mean += v / kN;
  for (int64_t i = 0; i < kN; ++i) {
    const double z = (x[i] - mean) / 2;
    variance += z * z / kN;
    fourth += z * z * z * z / kN;
    const double before = i > 0 ? (x[i - 1] - mean) / 2 : 0;
    correlation += z * before / kN;
    of_squares += z * z * before * before / kN;
  }
  // Five standard errors: 1/sqrt(N), sqrt(2/N), sqrt(96/N), 1/sqrt(N), sqrt(8/N).
  EXPECT_NEAR(mean, 1, 5 * 2 / std::sqrt(kN));
  EXPECT_NEAR(variance, 1, 5 * std::sqrt(2.0 / kN));
  EXPECT_NEAR(fourth, 3, 5 * std::sqrt(96.0 / kN));
  EXPECT_NEAR(correlation, 0, 5 / std::sqrt(kN));
  EXPECT_NEAR(of_squares, 1, 5 * std::sqrt(8.0 / kN));
}

TEST(Elementwise, NormalNumbersAreAFunctionOfSeedAndIndexAlone) {
  Context ctx;
  std::vector<float> long_run(50000), short_run(10), other(10);
  set_thread_count(2);
  fill_normal(ctx, view(long_run, {50000}), 7, 0.0f, 1.0f);
  set_thread_count(1);
  fill_normal(ctx, view(short_run, {10}), 7, 0.0f, 1.0f);
  fill_normal(ctx, view(other, {10}), 8, 0.0f, 1.0f);
  set_thread_count(0);
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(long_run[i], short_run[i]);
    EXPECT_NE(long_run[i], other[i]);
  }
}

}  // namespace
}  // namespace zaya
