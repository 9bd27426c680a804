// Legend: T tokens, K inputs, N outputs.
#include "ops/linear/linear.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/linear/linear_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

template <class T>
double error_of_forward(int64_t T_, int64_t N, int64_t K) {
  Context ctx;
  auto x = cast<T>(random_values(T_ * K, 1));
  auto weight = cast<T>(random_values(N * K, 2));
  std::vector<T> y(T_ * N);
  linear_forward(ctx, view(y, {T_, N}), view(x, {T_, K}), view(weight, {N, K}));
  std::vector<double> expected(T_ * N);
  const auto wide_x = widen(x), wide_weight = widen(weight);
  reference::linear_forward(expected.data(), wide_x.data(), wide_weight.data(), T_, N, K);
  return test::relative_error(widen(y), expected);
}

TEST(Linear, ForwardMatchesTheReference) {
  EXPECT_LT(error_of_forward<float>(37, 19, 65), 1e-6);      // fp32 rounding of 65 terms
  EXPECT_LT(error_of_forward<bf16>(37, 19, 65), 1.0 / 256);  // one rounding of the output to bf16
}

TEST(Linear, ForwardTakesAndWritesColumnSlices) {
  Context ctx;
  constexpr int64_t kT = 6, kN = 5, kK = 7;
  auto wide_x = cast<float>(random_values(kT * (kK + 4), 1));
  auto weight = cast<float>(random_values(kN * kK, 2));
  std::vector<float> wide_y(kT * (kN + 3), 9.0f), x(kT * kK), y(kT * kN);
  const Tensor slice_x = view(wide_x, {kT, kK + 4}).column_range(3, 3 + kK);
  const Tensor slice_y = view(wide_y, {kT, kN + 3}).column_range(1, 1 + kN);
  for (int64_t t = 0; t < kT; ++t) std::copy_n(slice_x.row<float>(t), kK, &x[t * kK]);
  linear_forward(ctx, slice_y, slice_x, view(weight, {kN, kK}));
  linear_forward(ctx, view(y, {kT, kN}), view(x, {kT, kK}), view(weight, {kN, kK}));
  for (int64_t t = 0; t < kT; ++t) {
    EXPECT_EQ(wide_y[t * (kN + 3)], 9.0f);
    for (int64_t n = 0; n < kN; ++n) EXPECT_EQ(slice_y.row<float>(t)[n], y[t * kN + n]);
  }
}

TEST(Linear, BiasGradientIsTheColumnSumAtEveryWidthAndMisalignment) {
  Context ctx;
  constexpr int64_t kT = 11, kWidth = 150;
  auto dy = cast<bf16>(random_values(kT * kWidth, 1));
  auto dy_f32 = cast<float>(widen(dy));
  for (int64_t begin = 0; begin < 4; ++begin) {
    for (int64_t n = 1; n <= 140; n += n < 36 ? 1 : 13) {
      std::vector<float> from_bf16(n, 1.0f), from_f32(n, 1.0f), expected(n, 1.0f);
      for (int64_t t = 0; t < kT; ++t) {
        for (int64_t i = 0; i < n; ++i) expected[i] += dy_f32[t * kWidth + begin + i];
      }
      bias_backward(ctx, view(from_bf16, {n}),
                    view(dy, {kT, kWidth}).column_range(begin, begin + n));
      bias_backward(ctx, view(from_f32, {n}),
                    view(dy_f32, {kT, kWidth}).column_range(begin, begin + n));
      EXPECT_EQ(from_bf16, expected);
      EXPECT_EQ(from_f32, expected);
    }
  }
}

TEST(Linear, GradientsDoNotDependOnTheNumberOfThreads) {
  Context ctx;
  constexpr int64_t kT = 700, kN = 150, kK = 80;
  auto dy = cast<float>(random_values(kT * kN, 1));
  auto x = cast<float>(random_values(kT * kK, 2));
  std::vector<float> dweight[2], dbias[2];
  for (int threads : {1, 2}) {
    set_thread_count(threads);
    dweight[threads - 1].assign(kN * kK, 0.0f);
    dbias[threads - 1].assign(kN, 0.0f);
    linear_backward_weight(ctx, view(dweight[threads - 1], {kN, kK}), view(dy, {kT, kN}),
                           view(x, {kT, kK}));
    bias_backward(ctx, view(dbias[threads - 1], {kN}), view(dy, {kT, kN}));
  }
  set_thread_count(0);
  EXPECT_EQ(0, std::memcmp(dweight[0].data(), dweight[1].data(), kN * kK * sizeof(float)));
  EXPECT_EQ(0, std::memcmp(dbias[0].data(), dbias[1].data(), kN * sizeof(float)));
}

}  // namespace
}  // namespace zaya
