#include <gtest/gtest.h>

#include "ops/cca/qk_norm_rope.h"
#include "ops/cca/qk_norm_rope_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::Complex;
using test::complex_step_gradient;
using test::random_values;
using test::relative_error;
using test::view;
using test::widen;

constexpr int64_t kPositions = 20;

// Checks dz, dqk0 (overwritten) and dtemp (adds). `size` is the deviation of z and qk0.
template <class Q, class T>
void expect_gradients(const QkShape& s, int64_t tokens, double size, double tolerance) {
  const int64_t nq = s.query_heads * s.head_dim, nk = s.key_heads * s.head_dim, C = nq + nk;
  std::vector<float> cos(kPositions * s.rotary / 2), sin(cos.size());
  const auto tables = [&](std::vector<float>& x) { return view(x, {kPositions, s.rotary / 2}); };
  rotary_tables(tables(cos), tables(sin), 100.0);
  std::vector<int32_t> positions;
  for (int64_t t = 0; t < tokens; ++t)
    positions.push_back(static_cast<int32_t>(t * 3 % kPositions));
  auto z = cast<float>(random_values(tokens * C, 1, size));
  auto qk0 = cast<T>(random_values(tokens * C, 2, size));
  auto temp = cast<float>(random_values(s.key_heads, 3));
  auto dq = cast<Q>(random_values(tokens * nq, 4));
  auto dk = cast<Q>(random_values(tokens * nk, 5));
  std::vector<float> dz(z.size(), 7.0f), dqk0(z.size(), 7.0f), dtemp(s.key_heads, 1.0f);
  Context ctx;
  qk_norm_rope_backward(ctx, view(dz, {tokens, C}), view(dqk0, {tokens, C}),
                        view(dtemp, {s.key_heads}), view(dq, {tokens, nq}), view(dk, {tokens, nk}),
                        view(z, {tokens, C}), view(qk0, {tokens, C}), view(temp, {s.key_heads}),
                        tables(cos), tables(sin), view(positions, {tokens}), s);
  const auto gq = widen(dq), gk = widen(dk);
  const std::vector<Complex> cos_c(cos.begin(), cos.end()), sin_c(sin.begin(), sin.end());
  const auto loss = [&](const std::vector<std::vector<Complex>>& x) {
    std::vector<Complex> q(gq.size()), k(gk.size());
    reference::qk_norm_rope<Complex>(q.data(), k.data(), x[0].data(), x[1].data(), x[2].data(),
                                     cos_c.data(), sin_c.data(), positions.data(), tokens, s);
    Complex sum = 0;
    for (size_t i = 0; i < q.size(); ++i) sum += q[i] * gq[i];
    for (size_t i = 0; i < k.size(); ++i) sum += k[i] * gk[i];
    return sum;
  };
  const std::vector<std::vector<double>> at{widen(z), widen(qk0), widen(temp)};
  EXPECT_LT(relative_error(widen(dz), complex_step_gradient(loss, at, 0)), tolerance);
  EXPECT_LT(relative_error(widen(dqk0), complex_step_gradient(loss, at, 1)), tolerance);
  auto want = complex_step_gradient(loss, at, 2);
  for (double& x : want) x += 1;
  // One number, of terms of either sign that may cancel a digit.
  EXPECT_LT(relative_error(widen(dtemp), want), 10 * tolerance);
}

// A few dozen f32 roundings; the part along x cancels.
constexpr double kTolerance = 5e-6;

TEST(QkNormRopeGradient, MatchesForEveryHeadSize) {
  for (int64_t d = 2; d <= 18; ++d)
    expect_gradients<float, float>({2, 1, d, d / 4 * 2 + 2 * (d < 4)}, 3, 1.0, kTolerance);
}

TEST(QkNormRopeGradient, MatchesForEveryGrouping) {
  expect_gradients<float, float>({4, 2, 8, 4}, 40, 1.0,
                                 kTolerance);  // more than one item of tokens
  expect_gradients<float, float>({3, 3, 8, 8}, 3, 1.0, kTolerance);
  expect_gradients<float, float>({6, 1, 8, 4}, 3, 1.0, kTolerance);
}

TEST(QkNormRopeGradient, MatchesForBf16Inputs) {
  expect_gradients<bf16, bf16>({4, 2, 8, 4}, 3, 1.0, kTolerance);
  expect_gradients<float, bf16>({4, 2, 8, 4}, 3, 1.0, kTolerance);
}

TEST(QkNormRopeGradient, TakesTheNormAsAConstantBelowEps) {
  expect_gradients<float, float>({4, 2, 8, 4}, 3, 1e-9, kTolerance);
}

}  // namespace
}  // namespace zaya
