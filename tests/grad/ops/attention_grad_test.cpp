#include <gtest/gtest.h>

#include <cstring>

#include "ops/attention/attention.h"
#include "ops/attention/attention_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::Complex;
using test::random_values;
using test::relative_error;
using test::view;
using test::widen;

using Spans = std::vector<AttentionSpan>;

// dq, dk, dv of sum(o * d_o), every output full of rubbish before the call.
template <class T>
std::array<std::vector<T>, 3> backward(const AttentionShape& s, const Spans& spans,
                                       std::vector<T> q, std::vector<T> k, std::vector<T> v,
                                       std::vector<T> d_o) {
  const int64_t wide = s.query_heads * s.head_dim, narrow = s.key_heads * s.head_dim;
  const int64_t queries = static_cast<int64_t>(q.size()) / wide;
  const int64_t keys = static_cast<int64_t>(k.size()) / narrow;
  std::vector<T> o(q.size()), dq(q.size(), T(7.0f)), dk(k.size(), T(7.0f)), dv(dk);
  std::vector<float> lse(queries * s.query_heads);
  const Tensor sums = view(lse, {queries, s.query_heads});
  const auto by_query = [&](std::vector<T>& x) { return view(x, {queries, wide}); };
  const auto by_key = [&](std::vector<T>& x) { return view(x, {keys, narrow}); };
  Context ctx;
  attention_forward(ctx, by_query(o), sums, by_query(q), by_key(k), by_key(v), spans, s);
  attention_backward(ctx, by_query(dq), by_key(dk), by_key(dv), by_query(d_o), by_query(o), sums,
                     by_query(q), by_key(k), by_key(v), spans, s);
  return {dq, dk, dv};
}

// The largest error of dq, dk, dv against the complex step.
template <class T>
double error_of(const AttentionShape& s, const Spans& spans, int64_t queries, int64_t keys) {
  const auto q = cast<T>(random_values(queries * s.query_heads * s.head_dim, 1));
  const auto k = cast<T>(random_values(keys * s.key_heads * s.head_dim, 2));
  const auto v = cast<T>(random_values(keys * s.key_heads * s.head_dim, 3));
  const auto d_o = cast<T>(random_values(q.size(), 4));
  const auto got = backward<T>(s, spans, q, k, v, d_o);
  const auto weight = widen(d_o);
  const auto loss = [&](const std::vector<std::vector<Complex>>& x) {
    std::vector<Complex> o(q.size());
    reference::attention<Complex>(o.data(), nullptr, x[0].data(), x[1].data(), x[2].data(),
                                  std::span<const AttentionSpan>(spans), s);
    Complex sum = 0;
    for (size_t i = 0; i < o.size(); ++i) sum += o[i] * weight[i];
    return sum;
  };
  double worst = 0;
  for (size_t i = 0; i < 3; ++i) {
    const auto want = test::complex_step_gradient(loss, {widen(q), widen(k), widen(v)}, i);
    worst = std::max(worst, relative_error(widen(got[i]), want));
  }
  return worst;
}

AttentionShape shape_of(int64_t nq, int64_t nk, int64_t d, int64_t window = 0) {
  return {nq, nk, d, window, 1.0f / std::sqrt(static_cast<float>(d))};
}

// Sums of f32 products; p * (dp - delta) cancels a digit.
constexpr double kF32 = 5e-6;
// o is saved with 8 bits and so is each gradient.
constexpr double kBf16 = 1e-2;

TEST(AttentionGradient, EveryGroupingMatches) {
  EXPECT_LT(error_of<float>(shape_of(1, 1, 5), {{0, 19, 0, 19}}, 19, 19), kF32);
  EXPECT_LT(error_of<float>(shape_of(4, 2, 6), {{0, 9, 0, 9}}, 9, 9), kF32);
  EXPECT_LT(error_of<float>(shape_of(3, 3, 4), {{0, 9, 0, 9}}, 9, 9), kF32);
  EXPECT_LT(error_of<bf16>(shape_of(4, 2, 6), {{0, 9, 0, 9}}, 9, 9), kBf16);
}

TEST(AttentionGradient, EveryHeadSizeMatches) {
  for (int64_t d : {1, 3, 8, 16, 17, 24, 33})
    EXPECT_LT(error_of<float>(shape_of(2, 1, d), {{0, 5, 0, 5}}, 5, 5), kF32) << d;
}

TEST(AttentionGradient, ALengthOfSeveralBlocksMatches) {
  EXPECT_LT(error_of<float>(shape_of(2, 1, 2), {{0, 140, 0, 140}}, 140, 140), kF32);
}

TEST(AttentionGradient, EveryWindowMatches) {
  for (int64_t window : {1, 2, 9, 40})
    EXPECT_LT(error_of<float>(shape_of(2, 1, 3, window), {{0, 40, 0, 40}}, 40, 40), kF32) << window;
  EXPECT_LT(error_of<float>(shape_of(1, 1, 2, 30), {{0, 100, 0, 100}}, 100, 100), kF32);
}

TEST(AttentionGradient, SpansOfABatchMatch) {
  const Spans spans{{0, 4, 0, 4}, {4, 0, 4, 0}, {4, 1, 4, 1}, {5, 20, 5, 20}};
  EXPECT_LT(error_of<float>(shape_of(2, 1, 4), spans, 25, 25), kF32);
}

TEST(AttentionGradient, QueriesAtTheEndOfTheirKeysMatch) {
  EXPECT_LT(error_of<float>(shape_of(2, 1, 4), {{0, 3, 0, 75}}, 3, 75), kF32);
}

TEST(AttentionGradient, RowsThatNoSpanHoldsAndKeysThatNoQuerySeesGetZero) {
  // Query rows 2 and 5 and key rows 3, 4 and 7 belong to no span; of the keys of the first span,
  // row 0 is behind its two queries' windows.
  const Spans spans{{0, 2, 0, 3}, {3, 2, 5, 2}};
  EXPECT_LT(error_of<float>(shape_of(1, 1, 4, 1), spans, 6, 8), kF32);
}

TEST(AttentionGradient, ASequenceHasTheSameBitsInAnyBatch) {
  const auto s = shape_of(4, 2, 8);
  const auto q = cast<float>(random_values(170 * 32, 1)),
             d_o = cast<float>(random_values(170 * 32, 2));
  const auto k = cast<float>(random_values(170 * 16, 3)),
             v = cast<float>(random_values(170 * 16, 4));
  const auto batch =
      backward<float>(s, {{0, 30, 0, 30}, {30, 100, 30, 100}, {130, 40, 130, 40}}, q, k, v, d_o);
  const auto alone = backward<float>(s, {{30, 100, 30, 100}}, q, k, v, d_o);
  for (size_t i = 0; i < 3; ++i) {
    const int64_t columns = i == 0 ? 32 : 16;
    EXPECT_EQ(std::memcmp(&batch[i][30 * columns], &alone[i][30 * columns],
                          100 * columns * sizeof(float)),
              0);
  }
}

// bf16 against f32 on the same values, which the tests above hold against the complex step.
double error_of_bf16(const AttentionShape& s, const Spans& spans, int64_t queries, int64_t keys) {
  const auto wide = [](const std::vector<bf16>& x) { return cast<float>(widen(x)); };
  const auto q = cast<bf16>(random_values(queries * s.query_heads * s.head_dim, 1));
  const auto k = cast<bf16>(random_values(keys * s.key_heads * s.head_dim, 2));
  const auto v = cast<bf16>(random_values(keys * s.key_heads * s.head_dim, 3));
  const auto d_o = cast<bf16>(random_values(q.size(), 4));
  const auto got = backward<bf16>(s, spans, q, k, v, d_o);
  const auto want = backward<float>(s, spans, wide(q), wide(k), wide(v), wide(d_o));
  double worst = 0;
  for (size_t i = 0; i < 3; ++i)
    worst = std::max(worst, relative_error(widen(got[i]), widen(want[i])));
  return worst;
}

TEST(AttentionGradient, EveryHeadSizeAndLengthMatchesInBf16) {
  for (int64_t d : {6, 32, 64, 96})
    for (int64_t length : {1, 2, 31, 32, 33, 63, 65, 140}) {
      const Spans spans{{0, length, 0, length}, {length, 70, length, 70}};
      EXPECT_LT(error_of_bf16(shape_of(4, 2, d), spans, length + 70, length + 70), kBf16)
          << d << " " << length;
    }
}

TEST(AttentionGradient, EveryWindowAndQueriesBehindTheirKeysMatchInBf16) {
  for (int64_t d : {6, 32})
    for (int64_t window : {0, 2, 30, 64}) {  // with one key dq and dk are all rounding
      EXPECT_LT(error_of_bf16(shape_of(3, 1, d, window), {{0, 150, 0, 150}}, 150, 150), kBf16)
          << d << " " << window;
      EXPECT_LT(error_of_bf16(shape_of(2, 1, d, window), {{0, 3, 0, 75}}, 3, 75), kBf16)
          << d << " " << window;
    }
}

// A block's last rows lie in memory that earlier, longer sequences used.
template <class T>
void expect_clean_after_not_a_number(int64_t d) {
  const auto s = shape_of(2, 1, d);
  const auto q = cast<T>(random_values(64 * 2 * d, 1)), d_o = cast<T>(random_values(64 * 2 * d, 2));
  const auto k = cast<T>(random_values(64 * d, 3)), v = cast<T>(random_values(64 * d, 4));
  const std::vector<T> bad_q(q.size(), T(NAN)), bad_k(k.size(), T(NAN));
  const auto want = backward<T>(s, {{0, 33, 0, 33}}, q, k, v, d_o);
  backward<T>(s, {{0, 64, 0, 64}}, bad_q, bad_k, bad_k, bad_q);
  const auto got = backward<T>(s, {{0, 33, 0, 33}}, q, k, v, d_o);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(std::memcmp(want[i].data(), got[i].data(), want[i].size() * sizeof(T)), 0) << d;
}

TEST(AttentionGradient, ANotANumberIsForgottenWithItsSequence) {
  expect_clean_after_not_a_number<float>(8);
  expect_clean_after_not_a_number<bf16>(8);
  expect_clean_after_not_a_number<bf16>(32);
}

TEST(AttentionGradient, SpansThatShareKeysAreRefused) {
  const std::vector<float> x(3 * 4);
  EXPECT_THROW(backward<float>(shape_of(1, 1, 4), {{0, 2, 0, 2}, {2, 1, 0, 3}}, x, x, x, x),
               ContractError);
}

}  // namespace
}  // namespace zaya
