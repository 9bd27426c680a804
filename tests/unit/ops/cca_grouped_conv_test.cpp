#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/cca/depthwise_conv.h"
#include "ops/cca/grouped_conv.h"
#include "ops/cca/grouped_conv_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

struct Case {
  std::vector<int32_t> cu_seqlens;
  int64_t groups = 0, group = 0, taps = 0;

  Ragged sequences() const { return {cu_seqlens}; }
  int64_t channels() const { return groups * group; }
  int64_t in_rows() const { return sequences().tokens() + sequences().count() * (taps - 1); }
};

template <class T>
std::vector<float> run(const Case& c, std::vector<T>& in, std::vector<float>& weight,
                       std::vector<float>& bias) {
  Context ctx;
  std::vector<float> out(c.sequences().tokens() * c.channels());
  grouped_conv_forward(
      ctx, view(out, {c.sequences().tokens(), c.channels()}), view(in, {c.in_rows(), c.channels()}),
      view(weight, {c.channels(), c.group, c.taps}), view(bias, {c.channels()}), c.sequences());
  return out;
}

// The relative error of one case against the reference in double, on the same rounded inputs and
// weights.
template <class T>
double error_of(const Case& c) {
  auto in = cast<T>(random_values(c.in_rows() * c.channels(), 1));
  auto weight = cast<float>(random_values(c.channels() * c.group * c.taps, 2));
  auto bias = cast<float>(random_values(c.channels(), 3));
  const auto out = run(c, in, weight, bias);
  std::vector<double> want(out.size());
  reference::grouped_conv(want.data(), widen(in).data(), widen(cast<T>(widen(weight))).data(),
                          widen(bias).data(), c.sequences(), c.channels(), c.group, c.taps);
  return test::relative_error(widen(out), want);
}

// Sums of up to a few hundred f32 terms; bf16 inputs are exact in f32.
constexpr double kTolerance = 2e-6;

TEST(GroupedConv, EveryGroupSizeMatchesTheReference) {
  for (int64_t group : {1, 2, 3, 5, 8, 15, 16, 17, 24, 33, 64}) {
    const Case c{{0, 5, 6, 6, 30}, 3, group, 2};
    EXPECT_LT(error_of<float>(c), kTolerance) << group;
    EXPECT_LT(error_of<bf16>(c), kTolerance) << group;
  }
}

TEST(GroupedConv, EveryTapCountMatchesTheReference) {
  for (int64_t taps = 1; taps <= 4; ++taps) {
    const Case c{{0, 1, 3, 3, 12, 300}, 2, 16, taps};
    EXPECT_LT(error_of<float>(c), kTolerance) << taps;
  }
}

TEST(GroupedConv, ATokenHasTheSameBitsInAnyBatch) {
  const int64_t C = 32, tokens = 500;
  auto weight = cast<float>(random_values(C * 16 * 2, 2));
  auto bias = cast<float>(random_values(C, 3));
  auto rows = cast<float>(random_values((tokens + 1) * C, 1));
  const auto alone = run(Case{{0, 500}, 2, 16, 2}, rows, weight, bias);
  // The same sequence behind two others.
  auto batch = cast<float>(random_values(40 * C, 4));
  batch.insert(batch.end(), rows.begin(), rows.end());
  const auto together = run(Case{{0, 7, 38, 538}, 2, 16, 2}, batch, weight, bias);
  EXPECT_EQ(std::memcmp(alone.data(), together.data() + 38 * C, alone.size() * sizeof(float)), 0);
}

TEST(GroupedConv, OneAndTwoThreadsGiveTheSameBits) {
  const Case c{{0, 100, 433}, 3, 24, 2};
  auto in = cast<float>(random_values(c.in_rows() * 72, 1));
  auto weight = cast<float>(random_values(72 * 24 * 2, 2));
  auto bias = cast<float>(random_values(72, 3));
  auto dout = cast<float>(random_values(433 * 72, 4));
  const auto all = [&](int threads) {
    set_thread_count(threads);
    Context ctx;
    std::vector<float> result = run(c, in, weight, bias);
    std::vector<float> din(in.size()), dweight(weight.size()), dbias(72);
    grouped_conv_backward(ctx, view(din, {c.in_rows(), 72}), view(dweight, {72, 24, 2}),
                          view(dbias, {72}), view(dout, {433, 72}), view(in, {c.in_rows(), 72}),
                          view(weight, {72, 24, 2}), c.sequences());
    for (const auto& x : {din, dweight, dbias}) result.insert(result.end(), x.begin(), x.end());
    set_thread_count(0);
    return result;
  };
  const auto one = all(1), two = all(2);
  EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0);
}

// The two convolutions over `tokens` new rows of one sequence, whose input rows from -history on
// precede them in `in` [history + tokens, C].
template <class T>
std::vector<float> convolve(const T* in, bool has_history, int64_t history, int64_t tokens,
                            int64_t C, int64_t d, std::vector<float>& weight0,
                            std::vector<float>& weight1, std::vector<float>& bias) {
  Context ctx;
  const int64_t taps0 = static_cast<int64_t>(weight0.size()) / C;
  const int64_t taps1 = static_cast<int64_t>(weight1.size()) / C / d;
  const std::vector<int32_t> cu_seqlens{0, static_cast<int32_t>(tokens)};
  std::vector<T> middle((tokens + taps1 - 1) * C);
  std::vector<float> out(tokens * C);
  T* rows = const_cast<T*>(in);
  const DType dtype = DTypeOf<T>::value;
  const Tensor past = has_history ? Tensor(rows, dtype, {history, C}) : Tensor();
  depthwise_conv_forward(ctx, view(middle, {tokens + taps1 - 1, C}),
                         Tensor(rows + history * C, dtype, {tokens, C}), past,
                         view(weight0, {C, taps0}), view(bias, {C}), {cu_seqlens}, taps1 - 1);
  grouped_conv_forward(ctx, view(out, {tokens, C}), view(middle, {tokens + taps1 - 1, C}),
                       view(weight1, {C, d, taps1}), view(bias, {C}), {cu_seqlens});
  return out;
}

template <class T>
void expect_prefill_equals_decode(int64_t taps0, int64_t taps1) {
  const int64_t d = 24, C = 3 * d, tokens = 11, past = taps0 - 1 + taps1 - 1;
  auto in = cast<T>(random_values((past + tokens) * C, 1));
  std::fill(in.begin(), in.begin() + past * C, T(0.0f));
  auto weight0 = cast<float>(random_values(C * taps0, 2));
  auto weight1 = cast<float>(random_values(C * d * taps1, 3));
  auto bias = cast<float>(random_values(C, 4));
  const auto whole = convolve(in.data(), false, past, tokens, C, d, weight0, weight1, bias);
  for (int64_t t = 0; t < tokens; ++t) {
    const auto one = convolve(in.data() + t * C, true, past, 1, C, d, weight0, weight1, bias);
    ASSERT_EQ(std::memcmp(one.data(), whole.data() + t * C, C * sizeof(float)), 0) << t;
  }
}

TEST(CcaConvolutions, DecodingTokenByTokenWithHistoryGivesTheBitsOfPrefill) {
  for (int64_t taps0 : {1, 2, 4})
    for (int64_t taps1 : {1, 2, 3}) {
      expect_prefill_equals_decode<float>(taps0, taps1);
      expect_prefill_equals_decode<bf16>(taps0, taps1);
    }
}

}  // namespace
}  // namespace zaya
