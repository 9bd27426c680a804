// Legend: T tokens, N or D columns. The loss is sum(dy * y).
#include <gtest/gtest.h>

#include "ops/norm/merge_norm.h"
#include "ops/norm/merge_norm_reference.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/rms_norm_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::Complex;
using test::random_values;
using test::view;
using test::widen;

constexpr int64_t kT = 4;
constexpr double kTolerance = 2e-6;  // fp32 roundings of short sums, with some cancellation

Complex weighted(const std::vector<Complex>& y, const std::vector<double>& dy) {
  Complex sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
  return sum;
}

std::vector<double> minus(const std::vector<float>& a, double b) {
  std::vector<double> out = widen(a);
  for (double& v : out) v -= b;
  return out;
}

template <class T>
void check_rms_norm(int64_t n) {
  constexpr float kEps = 1e-2f;  // large enough to matter in the gradient
  Context ctx;
  auto x = cast<float>(random_values(kT * n, 1));
  auto weight = cast<float>(random_values(n, 2));
  auto dy = cast<T>(random_values(kT * n, 3));
  std::vector<float> y(kT * n), rstd(kT), dx(kT * n, 1.0f), dweight(n, 2.0f);
  rms_norm_forward(ctx, view(y, {kT, n}), view(rstd, {kT}), view(x, {kT, n}), view(weight, {n}),
                   kEps);
  rms_norm_backward(ctx, view(dx, {kT, n}), view(dweight, {n}), view(dy, {kT, n}), view(x, {kT, n}),
                    view(weight, {n}), view(rstd, {kT}));
  const auto loss = [&](const std::vector<std::vector<Complex>>& in) {
    std::vector<Complex> out(kT * n);
    reference::rms_norm_forward(out.data(), in[0].data(), in[1].data(), kT, n, kEps);
    return weighted(out, widen(dy));
  };
  const std::vector<std::vector<double>> inputs{widen(x), widen(weight)};
  // The gradients were 1 and 2 before: both add. (Compared with those in place: with one column the
  // gradient of x is nearly zero.)
  auto expected_dx = test::complex_step_gradient(loss, inputs, 0);
  for (double& v : expected_dx) v += 1;
  EXPECT_LT(test::relative_error(widen(dx), expected_dx), kTolerance);
  EXPECT_LT(test::relative_error(minus(dweight, 2), test::complex_step_gradient(loss, inputs, 1)),
            kTolerance);
}

TEST(RmsNormGrad, BothGradientsAddAndMatchTheComplexStep) {
  for (int64_t n : {1, 2, 5, 8, 13, 16, 17, 31, 33}) {
    check_rms_norm<float>(n);
    check_rms_norm<bf16>(n);
  }
}

struct Vectors {
  std::vector<float> values[4];
  MergeVectors view(int64_t n) {
    return {test::view(values[0], {n}), test::view(values[1], {n}), test::view(values[2], {n}),
            test::view(values[3], {n})};
  }
};

// The loss is sum(dh * h) + sum(dx * y): y is read by the norm and by the stream after it.
template <class T>
void check_merge_norm(int64_t n, double d_o_tolerance) {
  constexpr float kEps = 1e-2f;
  Context ctx;
  auto x = cast<float>(random_values(kT * n, 1));
  auto o = cast<T>(random_values(kT * n, 2));
  auto dh = cast<float>(random_values(kT * n, 3)), dx = cast<float>(random_values(kT * n, 4));
  auto weight = cast<float>(random_values(n, 5));
  const auto wide_dh = widen(dh), wide_dx = widen(dx);
  Vectors vectors, dvectors;
  for (int i = 0; i < 4; ++i) vectors.values[i] = cast<float>(random_values(n, 10 + i));
  for (auto& v : dvectors.values) v.assign(n, 2.0f);
  std::vector<float> y(kT * n), h(kT * n), rstd(kT), dweight(n, 2.0f);
  std::vector<T> d_o(kT * n, T(9.0f));
  const auto loss = [&](const std::vector<std::vector<Complex>>& in) {
    std::vector<Complex> out(kT * n), normed(kT * n);
    reference::merge_norm_forward(out.data(), normed.data(), in[0].data(), in[1].data(),
                                  in[2].data(), in[3].data(), in[4].data(), in[5].data(),
                                  in[6].data(), kT, n, kEps);
    return weighted(normed, wide_dh) + weighted(out, wide_dx);
  };
  std::vector<std::vector<double>> inputs{widen(o), widen(x)};
  for (const auto& v : vectors.values) inputs.push_back(widen(v));
  inputs.push_back(widen(weight));
  const Merge merge{view(y, {kT, n}), view(o, {kT, n}), view(x, {kT, n}), vectors.view(n)};
  merge_norm_forward(ctx, merge, view(h, {kT, n}), view(rstd, {kT}), view(weight, {n}), kEps);
  merge_norm_backward(ctx, view(dx, {kT, n}), view(d_o, {kT, n}), dvectors.view(n),
                      view(dweight, {n}), view(dh, {kT, n}), merge, view(rstd, {kT}),
                      view(weight, {n}));
  const auto gradient = [&](size_t i) { return test::complex_step_gradient(loss, inputs, i); };
  EXPECT_LT(test::relative_error(widen(d_o), gradient(0)), d_o_tolerance);
  EXPECT_LT(test::relative_error(widen(dx), gradient(1)), kTolerance);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_LT(test::relative_error(minus(dvectors.values[i], 2), gradient(2 + i)), kTolerance);
  EXPECT_LT(test::relative_error(minus(dweight, 2), gradient(6)), kTolerance);
}

TEST(MergeNormGrad, ActivationsOverwriteAndVectorsAdd) {
  for (int64_t n : {1, 2, 5, 8, 13, 16, 17, 31, 40}) {
    check_merge_norm<float>(n, kTolerance);
    check_merge_norm<bf16>(n, 1.0 / 256);  // d_o is rounded once to bf16
  }
}

}  // namespace
}  // namespace zaya
