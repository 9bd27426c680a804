#include "backend/cpu/row_products.h"

#include <gtest/gtest.h>

#include "backend/cpu/quantized_weight.h"
#include "backend/cpu/threads.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::relative_error;
using test::view;
using test::widen;

// A weight of any format, with its memory and its values.
struct Held {
  std::vector<float> values;  // what the format holds of the values asked for
  std::vector<bf16> halves, scales;
  std::vector<int8_t> int8;
  std::vector<uint8_t> int4;
  Weight weight;

  Held(WeightFormat format, int64_t N, int64_t K, uint64_t seed) {
    values = cast<float>(random_values(N * K, seed));
    if (format == WeightFormat::f32) {
      weight = view(values, {N, K});
    } else if (format == WeightFormat::bf16) {
      halves = cast<bf16>(random_values(N * K, seed));
      weight = view(halves, {N, K});
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(halves[i]);
    } else {
      scales.resize(static_cast<size_t>(N * K / kQuantGroup));
      const Tensor scale = view(scales, {N, K / kQuantGroup});
      int8.resize(static_cast<size_t>(N * K));
      int4.resize(static_cast<size_t>(N * K / 2));
      weight = format == WeightFormat::int8
                   ? Weight(Tensor(int8.data(), DType::i8, {N, K}), scale)
                   : Weight(Tensor(int4.data(), DType::u8, {N, K / 2}), scale);
      for (int64_t n = 0; n < N; ++n) {
        encode_weights(weight, n, values.data() + n * K);
        decode_weights(values.data() + n * K, weight, n, 0, K);
      }
    }
  }
};

std::vector<double> product(const std::vector<double>& x, const std::vector<float>& w, int64_t T,
                            int64_t N, int64_t K) {
  std::vector<double> y(static_cast<size_t>(T * N));
  for (int64_t t = 0; t < T; ++t)
    for (int64_t n = 0; n < N; ++n)
      for (int64_t k = 0; k < K; ++k)
        y[t * N + n] += x[t * K + k] * static_cast<double>(w[n * K + k]);
  return y;
}

// x rounded as the kernels round it for weights of codes: 127 steps to the largest of a group.
std::vector<double> rounded_groups(std::vector<double> x) {
  for (size_t g = 0; g < x.size(); g += kQuantGroup) {
    double largest = 0;
    for (size_t i = g; i < g + kQuantGroup; ++i) largest = std::max(largest, std::abs(x[i]));
    for (size_t i = g; i < g + kQuantGroup && largest > 0; ++i)
      x[i] = std::nearbyint(x[i] * 127 / largest) * largest / 127;
  }
  return x;
}

constexpr WeightFormat kFormats[] = {WeightFormat::f32, WeightFormat::bf16, WeightFormat::int8,
                                     WeightFormat::int4};
bool is_plain(WeightFormat format) {
  return format == WeightFormat::f32 || format == WeightFormat::bf16;
}

TEST(RowProducts, AreTheProductsOfWhatTheWeightHolds) {
  for (WeightFormat format : kFormats) {
    for (int64_t K : {32, 64, 96, 128, 160, 416, 2048}) {
      const int64_t N = 9, T = 3;
      Held w(format, N, K, 1);
      auto x = cast<float>(random_values(T * K, 2));
      x[5] = 0;
      std::vector<float> y(T * N);
      const RowProduct p{view(y, {T, N}), view(x, {T, K}), w.weight};
      row_products({&p, 1});
      const auto read = is_plain(format) ? widen(x) : rounded_groups(widen(x));
      // Rounding x to codes in f32 may fall on the other side of a tie: one code in many.
      EXPECT_LT(relative_error(widen(y), product(read, w.values, T, N, K)),
                is_plain(format) ? 1e-6 : 1e-4)
          << static_cast<int>(format) << " " << K;
    }
  }
}

TEST(RowProducts, OfPlainWeightsTakeAnyNumberOfInputs) {
  for (WeightFormat format : {WeightFormat::f32, WeightFormat::bf16}) {
    for (int64_t K = 1; K <= 37; ++K) {
      Held w(format, 5, K, 1);
      auto x = cast<float>(random_values(K, 2));
      std::vector<float> y(5);
      const RowProduct p{view(y, {1, 5}), view(x, {1, K}), w.weight};
      row_products({&p, 1});
      EXPECT_LT(relative_error(widen(y), product(widen(x), w.values, 1, 5, K)), 1e-6) << K;
    }
  }
}

TEST(RowProducts, ARowHasItsBitsWhateverIsBesideIt) {
  for (WeightFormat format : kFormats) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      const int64_t N = 700, K = 192, T = 6;
      Held w(format, N, K, 1), other(format, 40, K, 3);
      auto x = cast<float>(random_values(T * K, 2));
      auto halves = cast<bf16>(random_values(T * K, 2));
      const Tensor rows = dtype == DType::f32 ? view(x, {T, K}) : view(halves, {T, K});
      std::vector<float> y(T * N), beside(T * 40), alone(N);
      // Two products of the same rows, in one call and with any number of threads.
      for (int threads : {1, 2}) {
        set_thread_count(threads);
        const RowProduct both[] = {{view(beside, {T, 40}), rows, other.weight},
                                   {view(y, {T, N}), rows, w.weight}};
        row_products(both);
        set_thread_count(0);
        for (int64_t t = 0; t < T; ++t) {
          const RowProduct p{view(alone, {1, N}), rows.row_range(t, t + 1), w.weight};
          row_products({&p, 1});
          EXPECT_EQ(alone, std::vector<float>(y.begin() + t * N, y.begin() + (t + 1) * N));
        }
      }
    }
  }
}

TEST(RowProducts, WriteBf16AndSlicesOfWiderRows) {
  const int64_t N = 8, K = 64;
  Held w(WeightFormat::int8, N, K, 1);
  auto x = cast<bf16>(random_values(2 * K, 2));
  std::vector<float> y(2 * N);
  std::vector<bf16> wide(2 * (N + 3), bf16(7.0f));
  const RowProduct products[] = {
      {view(y, {2, N}), view(x, {2, K}), w.weight},
      {view(wide, {2, N + 3}).column_range(1, 1 + N), view(x, {2, K}), w.weight}};
  row_products(products);
  for (int64_t t = 0; t < 2; ++t)
    for (int64_t n = -1; n < N + 2; ++n)
      EXPECT_EQ(static_cast<float>(wide[t * (N + 3) + 1 + n]),
                n < 0 || n >= N ? 7.0f : static_cast<float>(bf16(y[t * N + n])));
}

TEST(RowProducts, PassOnWhatIsNotFinite) {
  for (WeightFormat format : kFormats) {
    for (float bad : {NAN, INFINITY}) {
      Held w(format, 4, 64, 1);
      auto x = cast<float>(random_values(64, 2));
      x[40] = bad;
      std::vector<float> y(4);
      const RowProduct p{view(y, {1, 4}), view(x, {1, 64}), w.weight};
      row_products({&p, 1});
      for (float v : y) EXPECT_FALSE(std::isfinite(v));
    }
  }
}

TEST(RowProducts, OfZerosAreZero) {
  for (WeightFormat format : kFormats) {
    Held w(format, 4, 64, 1);
    std::vector<float> x(64), y(4, 7.0f);
    const RowProduct p{view(y, {1, 4}), view(x, {1, 64}), w.weight};
    row_products({&p, 1});
    EXPECT_EQ(y, std::vector<float>(4));
  }
}

}  // namespace
}  // namespace zaya
