#include <gtest/gtest.h>

#include "ops/cca/value_shift.h"
#include "ops/cca/value_shift_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

const std::vector<int32_t> kCuSeqlens{0, 4, 4, 5, 80};
const Ragged kSequences{kCuSeqlens};

template <class T>
void expect_forward_matches(bool has_previous) {
  const int64_t H = 7, tokens = kSequences.tokens();
  auto in = cast<T>(random_values(tokens * H, 1));
  auto previous = cast<T>(random_values(kSequences.count() * H, 2));
  std::vector<T> out(tokens * H);
  Context ctx;
  value_shift_forward(ctx, view(out, {tokens, H}), view(in, {tokens, H}),
                      has_previous ? view(previous, {kSequences.count(), H}) : Tensor(),
                      kSequences);
  std::vector<double> want(out.size());
  const auto before = widen(previous);
  reference::value_shift(want.data(), widen(in).data(), has_previous ? before.data() : nullptr,
                         kSequences, H);
  EXPECT_EQ(widen(out), want);
}

TEST(ValueShift, IsExactlyTheReference) {
  for (bool has_previous : {false, true}) {
    expect_forward_matches<float>(has_previous);
    expect_forward_matches<bf16>(has_previous);
  }
}

TEST(ValueShift, WritesAColumnRangeAndNothingBesideIt) {
  const std::vector<int32_t> cu_seqlens{0, 3};
  std::vector<float> in{1, 2, 3, 4, 5, 6}, out(12, 9.0f);
  Context ctx;
  value_shift_forward(ctx, view(out, {3, 4}).column_range(2, 4), view(in, {3, 2}), Tensor(),
                      {cu_seqlens});
  EXPECT_EQ(out, (std::vector<float>{9, 9, 0, 0, 9, 9, 1, 2, 9, 9, 3, 4}));
}

TEST(ValueShift, DecodingTokenByTokenEqualsPrefill) {
  const std::vector<int32_t> one{0, 1}, all{0, 5};
  auto in = cast<float>(random_values(15, 1));
  std::vector<float> whole(15), out(3), previous(3);
  Context ctx;
  value_shift_forward(ctx, view(whole, {5, 3}), view(in, {5, 3}), Tensor(), {all});
  for (int64_t t = 0; t < 5; ++t) {
    value_shift_forward(ctx, view(out, {1, 3}), view(in, {5, 3}).row_range(t, t + 1),
                        view(previous, {1, 3}), {one});
    EXPECT_EQ(out, std::vector<float>(whole.begin() + t * 3, whole.begin() + t * 3 + 3));
    std::copy(in.begin() + t * 3, in.begin() + t * 3 + 3, previous.begin());
  }
}

TEST(ValueShift, BackwardMovesGradientsOneTokenBackWithinASequence) {
  const std::vector<int32_t> cu_seqlens{0, 3, 5};
  std::vector<float> dout{1, 2, 3, 4, 5}, din(5, 9.0f);
  Context ctx;
  value_shift_backward(ctx, view(din, {5, 1}), view(dout, {5, 1}), {cu_seqlens});
  EXPECT_EQ(din, (std::vector<float>{2, 3, 0, 5, 0}));
}

}  // namespace
}  // namespace zaya
