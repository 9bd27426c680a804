#include "ops/attention/attention.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "backend/cpu/threads.h"
#include "ops/attention/attention_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

using Spans = std::vector<AttentionSpan>;

AttentionShape shape_of(int64_t nq, int64_t nk, int64_t d, int64_t window = 0) {
  return {nq, nk, d, window, 1.0f / std::sqrt(static_cast<float>(d))};
}

template <class T>
struct Values {
  AttentionShape shape;
  std::vector<T> q, k, v, o;
  std::vector<float> lse;

  Values(const AttentionShape& s, int64_t queries, int64_t keys)
      : shape(s),
        q(cast<T>(random_values(queries * s.query_heads * s.head_dim, 1, 2.0))),
        k(cast<T>(random_values(keys * s.key_heads * s.head_dim, 2))),
        v(cast<T>(random_values(keys * s.key_heads * s.head_dim, 3))),
        o(q.size()),
        lse(queries * s.query_heads) {}
  Tensor rows(std::vector<T>& x, int64_t heads) {
    const int64_t columns = heads * shape.head_dim;
    return view(x, {static_cast<int64_t>(x.size()) / columns, columns});
  }
  Tensor queries(std::vector<T>& x) { return rows(x, shape.query_heads); }
  Tensor keys(std::vector<T>& x) { return rows(x, shape.key_heads); }
  Tensor sums() { return view(lse, {queries(q).rows(), shape.query_heads}); }
  void run(const Spans& spans) {
    Context ctx;
    attention_forward(ctx, queries(o), sums(), queries(q), keys(k), keys(v), spans, shape);
  }
};

// The larger of the errors of o and lse against the reference in double, on the same rounded
// inputs.
template <class T>
double error_of(const Spans& spans, const AttentionShape& shape) {
  int64_t queries = 0, keys = 0;
  for (const AttentionSpan& s : spans) {
    queries = std::max(queries, s.q_begin + s.q_length);
    keys = std::max(keys, s.k_begin + s.k_length);
  }
  Values<T> x(shape, queries, keys);
  x.run(spans);
  std::vector<double> o(x.o.size()), lse(x.lse.size());
  reference::attention(o.data(), lse.data(), widen(x.q).data(), widen(x.k).data(),
                       widen(x.v).data(), std::span<const AttentionSpan>(spans), shape);
  // lse is f32 in both formats.
  EXPECT_LT(test::relative_error(widen(x.lse), lse), 1e-6);
  return test::relative_error(widen(x.o), o);
}

// Sums of f32 terms, weights from an exponential good to a few units in the last place.
constexpr double kF32 = 2e-6;
// The output is rounded once to 8 bits.
constexpr double kBf16 = 4e-3;

TEST(Attention, EveryLengthMatchesTheReference) {
  for (int64_t length = 1; length <= 70; ++length) {
    EXPECT_LT(error_of<float>({{0, length, 0, length}}, shape_of(2, 1, 16)), kF32) << length;
    EXPECT_LT(error_of<bf16>({{0, length, 0, length}}, shape_of(1, 1, 8)), kBf16) << length;
    EXPECT_LT(error_of<bf16>({{0, length, 0, length}}, shape_of(2, 1, 32)), kBf16) << length;
  }
}

TEST(Attention, EveryHeadSizeMatchesTheReference) {
  for (int64_t d : {1, 2, 3, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 64, 96, 128}) {
    EXPECT_LT(error_of<float>({{0, 21, 0, 21}}, shape_of(4, 2, d)), kF32) << d;
    EXPECT_LT(error_of<bf16>({{0, 21, 0, 21}}, shape_of(4, 2, d)), kBf16) << d;
    EXPECT_LT(error_of<bf16>({{0, 150, 0, 150}}, shape_of(3, 1, d)), kBf16) << d;
  }
}

TEST(Attention, EveryGroupingMatchesTheReference) {
  for (int64_t nq : {1, 2, 3, 4, 6, 12})
    for (int64_t nk : {1, 2, 3})
      if (nq % nk == 0) {
        EXPECT_LT(error_of<float>({{0, 100, 0, 100}}, shape_of(nq, nk, 16)), kF32) << nq << nk;
      }
}

TEST(Attention, MoreHeadsThanABlockHasLanesMatchTheReference) {
  EXPECT_LT(error_of<float>({{0, 3, 0, 3}}, shape_of(300, 1, 8)), kF32);
}

TEST(Attention, EveryWindowMatchesTheReference) {
  for (int64_t window : {1, 2, 3, 17, 63, 64, 65, 149, 150, 151, 1000}) {
    EXPECT_LT(error_of<float>({{0, 150, 0, 150}}, shape_of(2, 1, 16, window)), kF32) << window;
    EXPECT_LT(error_of<bf16>({{0, 150, 0, 150}}, shape_of(2, 1, 32, window)), kBf16) << window;
  }
}

TEST(Attention, SequencesOfABatchDoNotSeeEachOther) {
  const Spans spans{{0, 5, 0, 5}, {5, 0, 5, 0}, {5, 1, 5, 1}, {6, 200, 6, 200}, {206, 3, 206, 3}};
  EXPECT_LT(error_of<float>(spans, shape_of(4, 2, 24)), kF32);
  EXPECT_LT(error_of<bf16>(spans, shape_of(4, 2, 24)), kBf16);
  EXPECT_LT(error_of<bf16>(spans, shape_of(4, 2, 32)), kBf16);
}

TEST(Attention, QueriesBehindALongerKeyCacheMatchTheReference) {
  const Spans spans{{0, 1, 0, 130}, {1, 7, 130, 70}, {8, 1, 200, 1}};
  for (int64_t window : {0, 1, 40}) {
    EXPECT_LT(error_of<float>(spans, shape_of(4, 2, 16, window)), kF32) << window;
    EXPECT_LT(error_of<bf16>(spans, shape_of(4, 2, 32, window)), kBf16) << window;
  }
}

TEST(Attention, AWindowAsLongAsTheSequenceChangesNoBit) {
  const Spans spans{{0, 150, 0, 150}};
  Values<float> full(shape_of(2, 1, 16), 150, 150), window(shape_of(2, 1, 16, 150), 150, 150);
  full.run(spans);
  window.run(spans);
  EXPECT_EQ(full.o, window.o);
}

TEST(Attention, ScoresFarApartNeitherOverflowNorVanish) {
  const AttentionShape shape{1, 1, 8, 0, 400.0f};
  EXPECT_LT(error_of<float>({{0, 90, 0, 90}}, shape), 1e-3);  // scores of 1e4 carry errors of 1e-3
}

template <class T>
void expect_same_bits_in_any_batch(int64_t d) {
  Values<T> x(shape_of(4, 2, d, 90), 300, 300);
  const int64_t columns = 4 * d;
  x.run({{0, 40, 0, 40}, {40, 200, 40, 200}, {240, 60, 240, 60}});
  const auto batch = x.o;
  x.run({{40, 200, 40, 200}});
  EXPECT_EQ(std::memcmp(&batch[40 * columns], &x.o[40 * columns], 200 * columns * sizeof(T)), 0);
}

TEST(Attention, ATokenHasTheSameBitsInAnyBatch) {
  expect_same_bits_in_any_batch<float>(24);
  expect_same_bits_in_any_batch<bf16>(24);
  expect_same_bits_in_any_batch<bf16>(32);
}

template <class T>
void expect_decode_equals_prefill(int64_t d, int64_t window) {
  Values<T> x(shape_of(4, 2, d, window), 200, 200);
  const int64_t columns = 4 * d;
  x.run({{0, 200, 0, 200}});
  const auto whole = std::exchange(x.o, std::vector<T>(x.o.size()));
  for (int64_t t = 0; t < 200; t += t % 64 >= 60 ? 1 : 4) {  // both sides of block edges
    x.run({{t, 1, 0, t + 1}});
    ASSERT_EQ(std::memcmp(&whole[t * columns], &x.o[t * columns], columns * sizeof(T)), 0)
        << t << " " << window;
  }
}

TEST(Attention, DecodingTokenByTokenGivesTheBitsOfPrefill) {
  for (int64_t window : {0, 1, 50}) {
    expect_decode_equals_prefill<float>(16, window);
    expect_decode_equals_prefill<bf16>(16, window);
    expect_decode_equals_prefill<bf16>(32, window);
  }
}

template <class T>
void expect_not_a_number_reaches_its_queries(int64_t d) {
  Values<T> x(shape_of(1, 1, d), 40, 40);
  x.k[20 * d] = T(NAN);
  x.run({{0, 40, 0, 40}});
  for (int64_t t = 20; t < 40; ++t) EXPECT_TRUE(std::isnan(float(x.o[t * d]))) << t;
}

TEST(Attention, ANotANumberInAKeyReachesEveryQueryThatSeesIt) {
  expect_not_a_number_reaches_its_queries<float>(8);
  expect_not_a_number_reaches_its_queries<bf16>(8);
  expect_not_a_number_reaches_its_queries<bf16>(32);
}

// A block's last rows lie in memory that earlier, longer sequences used.
template <class T>
void expect_clean_after_not_a_number(int64_t d) {
  Values<T> x(shape_of(2, 1, d), 64, 64);
  x.run({{0, 33, 0, 33}});
  const auto want = x.o;
  Values<T> bad = x;
  std::fill(bad.q.begin(), bad.q.end(), T(NAN));
  std::fill(bad.k.begin(), bad.k.end(), T(NAN));
  std::fill(bad.v.begin(), bad.v.end(), T(NAN));
  bad.run({{0, 64, 0, 64}});
  x.run({{0, 33, 0, 33}});
  EXPECT_EQ(std::memcmp(want.data(), x.o.data(), want.size() * sizeof(T)), 0) << d;
}

TEST(Attention, ANotANumberIsForgottenWithItsSequence) {
  expect_clean_after_not_a_number<float>(8);
  expect_clean_after_not_a_number<bf16>(8);
  expect_clean_after_not_a_number<bf16>(32);
}

TEST(Attention, LogSumExpMayBeLeftOut) {
  Values<float> x(shape_of(2, 1, 8), 9, 9);
  x.run({{0, 9, 0, 9}});
  const auto want = x.o;
  Context ctx;
  attention_forward(ctx, x.queries(x.o), Tensor(), x.queries(x.q), x.keys(x.k), x.keys(x.v),
                    Spans{{0, 9, 0, 9}}, x.shape);
  EXPECT_EQ(x.o, want);
}

TEST(Attention, OneAndTwoThreadsGiveTheSameBits) {
  const Spans spans{{0, 150, 0, 150}, {150, 90, 150, 90}};
  Values<float> x(shape_of(4, 2, 16), 240, 240);
  auto d_o = cast<float>(random_values(x.o.size(), 4));
  const auto all = [&](int threads) {
    set_thread_count(threads);
    x.run(spans);
    std::vector<float> dq(x.q.size()), dk(x.k.size()), dv(x.v.size()), result = x.o;
    Context ctx;
    attention_backward(ctx, x.queries(dq), x.keys(dk), x.keys(dv), x.queries(d_o), x.queries(x.o),
                       x.sums(), x.queries(x.q), x.keys(x.k), x.keys(x.v), spans, x.shape);
    for (const auto& part : {dq, dk, dv}) result.insert(result.end(), part.begin(), part.end());
    set_thread_count(0);
    return result;
  };
  const auto one = all(1), two = all(2);
  EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0);
}

TEST(Attention, MoreQueriesThanKeysAreRefused) {
  Values<float> x(shape_of(1, 1, 4), 3, 3);
  EXPECT_THROW(x.run({{0, 3, 0, 2}}), ContractError);
}

}  // namespace
}  // namespace zaya
