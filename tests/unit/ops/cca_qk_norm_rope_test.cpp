#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/cca/qk_norm_rope.h"
#include "ops/cca/qk_norm_rope_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

struct Inputs {
  QkShape shape;
  int64_t tokens = 0;
  std::vector<float> z, temp, cos, sin;
  std::vector<int32_t> positions;

  Inputs(const QkShape& s, int64_t tokens) : shape(s), tokens(tokens) {
    z = cast<float>(random_values(tokens * channels(), 1));
    temp = cast<float>(random_values(s.key_heads, 2));
    for (int64_t t = 0; t < tokens; ++t) positions.push_back(static_cast<int32_t>((t * 7) % 50));
    if (s.rotary == 0) return;
    cos.resize(50 * s.rotary / 2);
    sin.resize(cos.size());
    rotary_tables(tables(cos), tables(sin), 10000.0);
  }
  int64_t channels() const { return (shape.query_heads + shape.key_heads) * shape.head_dim; }
  Tensor tables(std::vector<float>& x) const {
    return shape.rotary == 0 ? Tensor() : view(x, {50, shape.rotary / 2});
  }
};

// q then k.
template <class Q, class T>
std::vector<Q> run(Inputs& in, std::vector<T>& qk0) {
  const auto& s = in.shape;
  const int64_t nq = s.query_heads * s.head_dim, nk = s.key_heads * s.head_dim;
  std::vector<Q> q(in.tokens * nq), k(in.tokens * nk);
  Context ctx;
  qk_norm_rope_forward(ctx, view(q, {in.tokens, nq}), view(k, {in.tokens, nk}),
                       view(in.z, {in.tokens, nq + nk}), view(qk0, {in.tokens, nq + nk}),
                       view(in.temp, {s.key_heads}), in.tables(in.cos), in.tables(in.sin),
                       view(in.positions, {in.tokens}), s);
  q.insert(q.end(), k.begin(), k.end());
  return q;
}

template <class Q, class T>
double error_of(const QkShape& s) {
  Inputs in(s, 9);
  auto qk0 = cast<T>(random_values(in.tokens * in.channels(), 3));
  const auto out = run<Q>(in, qk0);
  std::vector<double> want(out.size());
  reference::qk_norm_rope(want.data(), want.data() + in.tokens * s.query_heads * s.head_dim,
                          widen(in.z).data(), widen(qk0).data(), widen(in.temp).data(),
                          widen(in.cos).data(), widen(in.sin).data(), in.positions.data(),
                          in.tokens, s);
  return test::relative_error(widen(out), want);
}

// A few roundings of 2^-24 each; an output in bf16 is rounded once to 8 bits.
constexpr double kF32 = 1e-6;
constexpr double kBf16 = 4e-3;

TEST(QkNormRope, EveryHeadSizeMatchesTheReference) {
  for (int64_t d = 1; d <= 35; ++d) {
    const QkShape shape{4, 2, d, d / 4 * 2};
    EXPECT_LT((error_of<float, float>(shape)), kF32) << d;
    EXPECT_LT((error_of<bf16, bf16>(shape)), kBf16) << d;
    EXPECT_LT((error_of<float, bf16>(shape)), kF32) << d;
    EXPECT_LT((error_of<bf16, float>(shape)), kBf16) << d;
  }
}

TEST(QkNormRope, EveryGroupingAndRotaryShareMatchesTheReference) {
  for (const QkShape& shape : {QkShape{1, 1, 16, 8}, QkShape{4, 4, 16, 16}, QkShape{6, 2, 64, 32},
                               QkShape{8, 2, 128, 64}, QkShape{4, 1, 24, 0}})
    EXPECT_LT((error_of<float, float>(shape)), kF32) << shape.head_dim << " " << shape.rotary;
}

TEST(QkNormRope, RowsOfTheOutputMayBeStrided) {
  const QkShape shape{2, 1, 8, 4};
  Inputs in(shape, 5);
  auto qk0 = cast<float>(random_values(5 * 24, 3));
  const auto want = run<float>(in, qk0);
  std::vector<float> both(5 * 24);
  const Tensor out = view(both, {5, 24});
  Context ctx;
  qk_norm_rope_forward(ctx, out.column_range(0, 16), out.column_range(16, 24), view(in.z, {5, 24}),
                       view(qk0, {5, 24}), view(in.temp, {1}), in.tables(in.cos), in.tables(in.sin),
                       view(in.positions, {5}), shape);
  for (int64_t t = 0; t < 5; ++t) {
    EXPECT_EQ(std::memcmp(&both[t * 24], &want[t * 16], 64), 0);
    EXPECT_EQ(std::memcmp(&both[t * 24 + 16], &want[80 + t * 8], 32), 0);
  }
}

TEST(QkNormRope, AHeadOfZerosStaysZero) {
  const QkShape shape{1, 1, 8, 4};
  Inputs in(shape, 1);
  std::fill(in.z.begin(), in.z.end(), 0.0f);
  std::vector<float> qk0(16);
  EXPECT_EQ(run<float>(in, qk0), std::vector<float>(16));
}

TEST(QkNormRope, OneAndTwoThreadsGiveTheSameBits) {
  const QkShape shape{4, 2, 16, 8};
  Inputs in(shape, 300);
  auto qk0 = cast<float>(random_values(300 * 96, 3));
  auto dq = cast<float>(random_values(300 * 64, 4)), dk = cast<float>(random_values(300 * 32, 5));
  const auto all = [&](int threads) {
    set_thread_count(threads);
    auto result = run<float>(in, qk0);
    std::vector<float> dz(300 * 96), dqk0(300 * 96), dtemp(2);
    Context ctx;
    qk_norm_rope_backward(ctx, view(dz, {300, 96}), view(dqk0, {300, 96}), view(dtemp, {2}),
                          view(dq, {300, 64}), view(dk, {300, 32}), view(in.z, {300, 96}),
                          view(qk0, {300, 96}), view(in.temp, {2}), in.tables(in.cos),
                          in.tables(in.sin), view(in.positions, {300}), shape);
    for (const auto& x : {dz, dqk0, dtemp}) result.insert(result.end(), x.begin(), x.end());
    set_thread_count(0);
    return result;
  };
  const auto one = all(1), two = all(2);
  EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0);
}

TEST(RotaryTables, HoldTheAnglesOfEveryPosition) {
  std::vector<float> cos(100000 * 2), sin(100000 * 2);
  rotary_tables(view(cos, {100000, 2}), view(sin, {100000, 2}), 5e6);
  EXPECT_EQ(cos[0], 1.0f);
  EXPECT_EQ(sin[1], 0.0f);
  // Columns 0 and 1 of rotary = 4 turn by 1 and by base^(-1/2) a position.
  EXPECT_EQ(cos[2 * 99999], static_cast<float>(std::cos(99999.0)));
  EXPECT_NEAR(sin[2 * 99999 + 1], std::sin(99999.0 / std::sqrt(5e6)), 1e-7);
}

TEST(QkNormRope, APositionBeyondTheTablesIsRefused) {
  const QkShape shape{1, 1, 8, 4};
  Inputs in(shape, 1);
  in.positions[0] = 50;
  std::vector<float> qk0(16);
  EXPECT_THROW(run<float>(in, qk0), ContractError);
}

}  // namespace
}  // namespace zaya
