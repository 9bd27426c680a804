// Legend: T tokens, N or D columns.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/norm/merge_norm.h"
#include "ops/norm/merge_norm_reference.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/rms_norm_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

constexpr float kEps = 1e-5f;
constexpr double kF32 = 1e-6;        // a few fp32 roundings
constexpr double kBf16 = 1.0 / 256;  // one rounding of the output to bf16

template <class T>
Tensor at(std::vector<T>& values, int64_t offset, Shape shape) {
  return Tensor(values.data() + offset, DTypeOf<T>::value, shape);
}

template <class T>
double error_of_rms_norm(int64_t rows, int64_t n, int64_t offset) {
  Context ctx;
  auto x = cast<float>(random_values(rows * n + offset, 1));
  auto weight = cast<float>(random_values(n + offset, 2));
  std::vector<T> y(rows * n + offset);
  std::vector<float> rstd(rows);
  rms_norm_forward(ctx, at(y, offset, {rows, n}), view(rstd, {rows}), at(x, offset, {rows, n}),
                   at(weight, offset, {n}), kEps);
  std::vector<double> expected(rows * n);
  const auto wide_x = widen(x), wide_weight = widen(weight);
  reference::rms_norm_forward(expected.data(), &wide_x[offset], &wide_weight[offset], rows, n,
                              kEps);
  const auto got = widen(y);
  return test::relative_error({got.begin() + offset, got.end()}, expected);
}

TEST(RmsNorm, MatchesTheReferenceAtEveryLengthAndMisalignment) {
  for (int64_t n = 1; n <= 35; ++n) {
    for (int64_t offset : {0, 1, 3}) {
      EXPECT_LT(error_of_rms_norm<float>(3, n, offset), kF32);
      EXPECT_LT(error_of_rms_norm<bf16>(3, n, offset), kBf16);
    }
  }
  EXPECT_LT(error_of_rms_norm<float>(100, 300, 0), kF32);
}

TEST(RmsNorm, SavesTheReciprocalRootOfTheMeanSquare) {
  Context ctx;
  std::vector<float> x{3, 4, 0, 0}, weight{1, 1, 1, 1}, y(4), rstd(1);
  rms_norm_forward(ctx, view(y, {1, 4}), view(rstd, {1}), view(x, {1, 4}), view(weight, {4}), 0);
  EXPECT_FLOAT_EQ(rstd[0], 0.4f);
}

TEST(RmsNorm, ARowOfZerosStaysZero) {
  Context ctx;
  std::vector<float> x(9), weight(9, 1.0f), y(9, 5.0f), rstd(1);
  rms_norm_forward(ctx, view(y, {1, 9}), view(rstd, {1}), view(x, {1, 9}), view(weight, {9}), kEps);
  EXPECT_EQ(y, x);
}

TEST(RmsNorm, ARowDoesNotDependOnTheRowsAroundIt) {
  Context ctx;
  constexpr int64_t kT = 200, kN = 130;
  auto x = cast<float>(random_values(kT * kN, 1));
  auto weight = cast<float>(random_values(kN, 2));
  std::vector<float> y(kT * kN), rstd(kT), row(kN), row_rstd(1);
  rms_norm_forward(ctx, view(y, {kT, kN}), view(rstd, {kT}), view(x, {kT, kN}), view(weight, {kN}),
                   kEps);
  rms_norm_forward(ctx, view(row, {1, kN}), view(row_rstd, {1}), at(x, 77 * kN, {1, kN}),
                   view(weight, {kN}), kEps);
  EXPECT_EQ(0, std::memcmp(row.data(), &y[77 * kN], kN * sizeof(float)));
}

// dx, then dweight.
std::vector<float> rms_norm_gradients(int threads) {
  Context ctx;
  constexpr int64_t kT = 300, kN = 140;
  auto x = cast<float>(random_values(kT * kN, 1));
  auto weight = cast<float>(random_values(kN, 2));
  auto dy = cast<float>(random_values(kT * kN, 3));
  std::vector<float> y(kT * kN), rstd(kT), gradients(kT * kN + kN, 0.5f);
  set_thread_count(threads);
  rms_norm_forward(ctx, view(y, {kT, kN}), view(rstd, {kT}), view(x, {kT, kN}), view(weight, {kN}),
                   kEps);
  rms_norm_backward(ctx, at(gradients, 0, {kT, kN}), at(gradients, kT * kN, {kN}),
                    view(dy, {kT, kN}), view(x, {kT, kN}), view(weight, {kN}), view(rstd, {kT}));
  set_thread_count(0);
  return gradients;
}

TEST(RmsNorm, GradientsDoNotDependOnTheNumberOfThreads) {
  const auto one = rms_norm_gradients(1), two = rms_norm_gradients(2);
  EXPECT_EQ(0, std::memcmp(one.data(), two.data(), one.size() * sizeof(float)));
}

struct MergeInputs {
  std::vector<float> vectors[4];
  MergeVectors view(int64_t n, int64_t offset = 0) {
    return {at(vectors[0], offset, {n}), at(vectors[1], offset, {n}), at(vectors[2], offset, {n}),
            at(vectors[3], offset, {n})};
  }
  explicit MergeInputs(int64_t n) {
    for (int i = 0; i < 4; ++i) vectors[i] = cast<float>(random_values(n, 10 + i));
  }
};

// The worse of the errors of y and h.
template <class O, class H>
double error_of_merge_norm(int64_t rows, int64_t n, int64_t offset) {
  Context ctx;
  auto x = cast<float>(random_values(rows * n + offset, 1));
  auto o = cast<O>(random_values(rows * n + offset, 2));
  auto weight = cast<float>(random_values(n + offset, 3));
  MergeInputs inputs(n + offset);
  const auto wide_x = widen(x), wide_o = widen(o), wide_weight = widen(weight);
  std::vector<double> expected_y(rows * n), expected_h(rows * n), wide[4];
  for (int i = 0; i < 4; ++i) wide[i] = widen(inputs.vectors[i]);
  reference::merge_norm_forward(
      expected_y.data(), expected_h.data(), &wide_o[offset], &wide_x[offset], &wide[0][offset],
      &wide[1][offset], &wide[2][offset], &wide[3][offset], &wide_weight[offset], rows, n, kEps);
  std::vector<float> y(rows * n), rstd(rows);
  std::vector<H> h(rows * n);
  merge_norm_forward(ctx,
                     {view(y, {rows, n}), at(o, offset, {rows, n}), at(x, offset, {rows, n}),
                      inputs.view(n, offset)},
                     view(h, {rows, n}), view(rstd, {rows}), at(weight, offset, {n}), kEps);
  return std::max(test::relative_error(widen(y), expected_y),
                  test::relative_error(widen(h), expected_h));
}

TEST(MergeNorm, MatchesTheReferenceAtEveryLengthAndMisalignment) {
  for (int64_t n = 1; n <= 35; ++n) {
    for (int64_t offset : {0, 1, 3}) {
      EXPECT_LT((error_of_merge_norm<float, float>(3, n, offset)), kF32);
      EXPECT_LT((error_of_merge_norm<bf16, float>(3, n, offset)), kF32);
      EXPECT_LT((error_of_merge_norm<bf16, bf16>(3, n, offset)), kBf16);
    }
  }
}

// dx, d_o, the norm's weight, then the four vectors.
std::vector<float> merge_norm_gradients(int threads) {
  Context ctx;
  constexpr int64_t kT = 300, kD = 140;
  std::vector<float> in[4], weight = cast<float>(random_values(kD, 5)), rstd(kT, 0.5f);
  for (int i = 0; i < 4; ++i) in[i] = cast<float>(random_values(kT * kD, 1 + i));
  MergeInputs inputs(kD), gradients(kD);
  std::vector<float> all(2 * kT * kD + kD);
  const Merge merge{view(in[0], {kT, kD}), view(in[1], {kT, kD}), view(in[2], {kT, kD}),
                    inputs.view(kD)};
  set_thread_count(threads);
  merge_norm_backward(ctx, at(all, 0, {kT, kD}), at(all, kT * kD, {kT, kD}), gradients.view(kD),
                      at(all, 2 * kT * kD, {kD}), view(in[3], {kT, kD}), merge, view(rstd, {kT}),
                      view(weight, {kD}));
  set_thread_count(0);
  for (const auto& v : gradients.vectors) all.insert(all.end(), v.begin(), v.end());
  return all;
}

TEST(MergeNorm, GradientsDoNotDependOnTheNumberOfThreads) {
  const auto one = merge_norm_gradients(1), two = merge_norm_gradients(2);
  EXPECT_EQ(0, std::memcmp(one.data(), two.data(), one.size() * sizeof(float)));
}

}  // namespace
}  // namespace zaya
