#include "ops/linear/quantize.h"

#include <gtest/gtest.h>

#include "backend/cpu/gemm.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::relative_error;
using test::view;
using test::widen;

struct Codes {
  std::vector<int8_t> int8;
  std::vector<uint8_t> int4;
  std::vector<bf16> scales;
  Weight weight;

  Codes(WeightFormat format, int64_t N, int64_t K)
      : int8(static_cast<size_t>(N * K)),
        int4(static_cast<size_t>(N * K / 2)),
        scales(static_cast<size_t>(N * K / kQuantGroup)) {
    const Tensor scale = view(scales, {N, K / kQuantGroup});
    weight = format == WeightFormat::int8
                 ? Weight(Tensor(int8.data(), DType::i8, {N, K}), scale)
                 : Weight(Tensor(int4.data(), DType::u8, {N, K / 2}), scale);
  }
};

std::vector<float> round_trip(WeightFormat format, std::vector<float> values, int64_t K) {
  Context ctx;
  const auto N = static_cast<int64_t>(values.size()) / K;
  Codes codes(format, N, K);
  quantize(ctx, codes.weight, view(values, {N, K}));
  dequantize(ctx, view(values, {N, K}), codes.weight);
  return values;
}

TEST(Quantize, Int8IsWithinHalfAStepOfEveryValue) {
  const auto values = cast<float>(random_values(4 * 96, 1));
  const auto back = round_trip(WeightFormat::int8, values, 96);
  for (size_t g = 0; g < values.size(); g += kQuantGroup) {
    float largest = 0;
    for (size_t i = g; i < g + kQuantGroup; ++i) largest = std::max(largest, std::abs(values[i]));
    // Half a step, and the 2^-9 by which the scale may be off at 127 steps.
    for (size_t i = g; i < g + kQuantGroup; ++i)
      EXPECT_LE(std::abs(back[i] - values[i]), largest * (0.5f / 127 + 1.0f / 512));
  }
}

TEST(Quantize, Int4IsBetterThanItsSimplestScale) {
  const auto values = cast<float>(random_values(64 * 128, 2));
  std::vector<float> simple = values;
  for (size_t g = 0; g < values.size(); g += kQuantGroup) {
    const auto first = simple.begin() + static_cast<int64_t>(g);
    const float extreme = *std::max_element(
        first, first + kQuantGroup, [](float a, float b) { return std::abs(a) < std::abs(b); });
    const float scale = extreme / -8;
    for (auto v = first; v != first + kQuantGroup; ++v)
      *v = std::clamp(std::nearbyint(*v / scale), -8.0f, 7.0f) * scale;
  }
  const double error =
      relative_error(widen(round_trip(WeightFormat::int4, values, 128)), widen(values));
  EXPECT_LT(error, 0.97 * relative_error(widen(simple), widen(values)));
}

TEST(Quantize, CodesAreWhereTheFormatSays) {
  Context ctx;
  std::vector<float> values(32);
  for (int i = 0; i < 32; ++i) values[i] = static_cast<float>(i % 16 - 8);  // exact: scale 1
  Codes int4(WeightFormat::int4, 1, 32), int8(WeightFormat::int8, 1, 32);
  quantize(ctx, int4.weight, view(values, {1, 32}));
  EXPECT_EQ(static_cast<float>(int4.scales[0]), 1.0f);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(int4.int4[i], i | (i << 4));
  for (float& v : values) v *= 127.0f / 8;
  quantize(ctx, int8.weight, view(values, {1, 32}));
  EXPECT_EQ(static_cast<float>(int8.scales[0]), 1.0f);
  EXPECT_EQ(int8.int8[0], -127);
  EXPECT_EQ(int8.int8[12], 64);  // 63.5, to even
}

TEST(Quantize, ZerosAndTinyValuesStayFinite) {
  for (WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    EXPECT_EQ(round_trip(format, std::vector<float>(64), 64), std::vector<float>(64));
    for (float tiny : {1e-45f, 1e-39f, 1e-20f})
      for (float v : round_trip(format, std::vector<float>(32, tiny), 32))
        EXPECT_LE(std::abs(v), 2 * tiny);
    for (float v : round_trip(format, std::vector<float>(32, 3e38f), 32))
      EXPECT_NEAR(v, 3e38f, 3e36f);
  }
}

TEST(Quantize, ProductsOfManyRowsReadTheCodesValues) {
  Context ctx;
  const int64_t T = 70, N = 90, K = 1120;
  for (WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    auto values = cast<float>(random_values(N * K, 1));
    auto x = cast<float>(random_values(T * K, 2));
    Codes codes(format, N, K);
    quantize(ctx, codes.weight, view(values, {N, K}));
    dequantize(ctx, view(values, {N, K}), codes.weight);
    std::vector<float> y(T * N), wanted(T * N);
    gemm({.c = view(y, {T, N}), .a = view(x, {T, K}), .b = codes.weight, .transpose_b = true});
    gemm({.c = view(wanted, {T, N}),
          .a = view(x, {T, K}),
          .b = view(values, {N, K}),
          .transpose_b = true});
    EXPECT_EQ(y, wanted);
    // bf16 rows read the values rounded to bf16.
    auto halves = cast<bf16>(random_values(T * K, 2));
    auto rounded = cast<bf16>(widen(values));
    gemm({.c = view(y, {T, N}), .a = view(halves, {T, K}), .b = codes.weight, .transpose_b = true});
    gemm({.c = view(wanted, {T, N}),
          .a = view(halves, {T, K}),
          .b = view(rounded, {N, K}),
          .transpose_b = true});
    EXPECT_LT(relative_error(widen(y), widen(wanted)), 4e-3);
  }
}

}  // namespace
}  // namespace zaya
