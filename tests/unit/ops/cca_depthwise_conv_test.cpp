#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/cca/depthwise_conv.h"
#include "ops/cca/depthwise_conv_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

struct Case {
  std::vector<int32_t> cu_seqlens;
  int64_t channels = 0, taps = 0, lead = 0;
  bool history = false;

  Ragged sequences() const { return {cu_seqlens}; }
  int64_t out_rows() const { return sequences().tokens() + sequences().count() * lead; }
  int64_t history_rows() const { return sequences().count() * (taps - 1 + lead); }
};

template <class T>
std::vector<T> run(const Case& c, std::vector<T>& in, std::vector<T>& history,
                   std::vector<float>& weight, std::vector<float>& bias) {
  Context ctx;
  std::vector<T> out(c.out_rows() * c.channels);
  const Tensor past = c.history ? view(history, {c.history_rows(), c.channels}) : Tensor();
  depthwise_conv_forward(
      ctx, view(out, {c.out_rows(), c.channels}), view(in, {c.sequences().tokens(), c.channels}),
      past, view(weight, {c.channels, c.taps}), view(bias, {c.channels}), c.sequences(), c.lead);
  return out;
}

// The relative error of one case against the reference in double, on the same rounded inputs.
template <class T>
double error_of(const Case& c) {
  auto in = cast<T>(random_values(c.sequences().tokens() * c.channels, 1));
  auto history = cast<T>(random_values(c.history_rows() * c.channels, 2));
  auto weight = cast<float>(random_values(c.channels * c.taps, 3));
  auto bias = cast<float>(random_values(c.channels, 4));
  const auto out = run(c, in, history, weight, bias);
  std::vector<double> want(out.size());
  const auto past = widen(history);
  reference::depthwise_conv(want.data(), widen(in).data(), c.history ? past.data() : nullptr,
                            widen(weight).data(), widen(bias).data(), c.sequences(), c.channels,
                            c.taps, c.lead);
  return test::relative_error(widen(out), want);
}

// A few roundings of 2^-24 each.
constexpr double kF32 = 1e-6;
// The output is rounded once to 8 bits.
constexpr double kBf16 = 4e-3;

TEST(DepthwiseConv, EveryChannelCountMatchesTheReference) {
  for (int64_t channels = 1; channels <= 33; ++channels) {
    const Case c{{0, 5, 6, 6, 9}, channels, 2, 1, false};
    EXPECT_LT(error_of<float>(c), kF32) << channels;
    EXPECT_LT(error_of<bf16>(c), kBf16) << channels;
  }
}

TEST(DepthwiseConv, EveryTapCountAndLeadMatchesTheReferenceWithAndWithoutHistory) {
  for (int64_t taps = 1; taps <= 5; ++taps)
    for (int64_t lead = 0; lead <= 3; ++lead)
      for (bool history : {false, true}) {
        const Case c{{0, 1, 3, 3, 12, 80}, 19, taps, lead, history};
        EXPECT_LT(error_of<float>(c), kF32) << taps << " " << lead << " " << history;
      }
}

TEST(DepthwiseConv, TheRowsBeforeAFreshSequenceAreTheBias) {
  const Case c{{0, 3, 7}, 6, 3, 2, false};
  std::vector<float> none, in = cast<float>(random_values(42, 1));
  std::vector<float> weight = cast<float>(random_values(18, 2));
  std::vector<float> bias = cast<float>(random_values(6, 3));
  const auto out = run(c, in, none, weight, bias);
  for (int64_t row : {0, 1, 5, 6})
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(out[row * 6 + i], bias[i]) << row;
}

TEST(DepthwiseConv, MisalignedInputsGiveTheSameBits) {
  const Case c{{0, 4}, 21, 2, 1, false};
  auto in = cast<float>(random_values(4 * 21, 1));
  auto weight = cast<float>(random_values(21 * 2, 2));
  auto bias = cast<float>(random_values(21, 3));
  std::vector<float> none;
  const auto want = run(c, in, none, weight, bias);
  Context ctx;
  for (int64_t shift = 1; shift < 4; ++shift) {
    std::vector<float> memory(shift + in.size()), out(shift + want.size());
    std::copy(in.begin(), in.end(), memory.begin() + shift);
    depthwise_conv_forward(ctx, Tensor(out.data() + shift, DType::f32, {5, 21}),
                           Tensor(memory.data() + shift, DType::f32, {4, 21}), Tensor(),
                           view(weight, {21, 2}), view(bias, {21}), c.sequences(), c.lead);
    EXPECT_EQ(std::memcmp(out.data() + shift, want.data(), want.size() * sizeof(float)), 0);
  }
}

TEST(DepthwiseConv, OneAndTwoThreadsGiveTheSameBits) {
  const Case c{{0, 100, 333}, 130, 2, 1, false};
  auto in = cast<float>(random_values(333 * 130, 1));
  auto weight = cast<float>(random_values(260, 2));
  auto bias = cast<float>(random_values(130, 3));
  auto dout = cast<float>(random_values(c.out_rows() * 130, 4));
  const auto all = [&](int threads) {
    set_thread_count(threads);
    Context ctx;
    std::vector<float> none, result = run(c, in, none, weight, bias);
    std::vector<float> din(333 * 130), dweight(260), dbias(130);
    depthwise_conv_backward(ctx, view(din, {333, 130}), view(dweight, {130, 2}), view(dbias, {130}),
                            view(din, {333, 130}), view(dout, {c.out_rows(), 130}),
                            view(in, {333, 130}), view(weight, {130, 2}), c.sequences(), c.lead);
    for (const auto& x : {din, dweight, dbias}) result.insert(result.end(), x.begin(), x.end());
    set_thread_count(0);
    return result;
  };
  const auto one = all(1), two = all(2);
  EXPECT_EQ(std::memcmp(one.data(), two.data(), one.size() * sizeof(float)), 0);
}

TEST(DepthwiseConv, AnOutputOfTheWrongLengthIsRefused) {
  const Case c{{0, 4}, 3, 2, 1, false};
  std::vector<float> out(4 * 3), in(4 * 3), weight(6), bias(3);
  Context ctx;
  EXPECT_THROW(depthwise_conv_forward(ctx, view(out, {4, 3}), view(in, {4, 3}), Tensor(),
                                      view(weight, {3, 2}), view(bias, {3}), c.sequences(), 1),
               ContractError);
}

}  // namespace
}  // namespace zaya
