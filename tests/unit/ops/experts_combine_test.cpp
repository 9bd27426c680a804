#include <gtest/gtest.h>

#include "ops/experts/combine.h"
#include "ops/experts/combine_reference.h"
#include "support/oracle.h"
#include "support/placed.h"

namespace zaya {
namespace {

using namespace test;

// Seven tokens, two experts; tokens 1 and 4 skip.
constexpr int64_t T = 7, E = 2;
std::vector<int32_t> order{2, 3, 6, 0, 5, 1, 4};
std::vector<int32_t> offsets{0, 3, 5, 7};

template <class S>
void expect_forward_matches_reference(Skip skip, double tolerance) {
  Context ctx;
  for (int64_t D = 1; D <= kMaxLength; ++D) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto expert_out = cast<S>(random_values(T * D, D)),
                 h = cast<S>(random_values(T * D, 2));
      const auto gate = cast<float>(random_values(T, 3));
      Placed<S> out_in(expert_out, {T, D}, offset), h_in(h, {T, D}, offset + 1);
      Placed<float> gate_in(gate, {T}, offset);
      Placed<S> y(cast<S>(std::vector<double>(T * D, 5.0)), {T, D}, offset + 2);
      combine_forward(ctx, y.tensor(), out_in.tensor(), h_in.tensor(), gate_in.tensor(),
                      view(order, {T}), view(offsets, {E + 2}), skip);
      std::vector<double> wanted(T * D);
      reference::combine(wanted.data(), widen(expert_out).data(), widen(h).data(),
                         widen(gate).data(), order.data(), offsets[E], skip, T, D);
      ASSERT_LT(relative_error(widen(y.values()), wanted), tolerance) << D << " " << offset;
    }
  }
}

TEST(Combine, ForwardMatchesTheReferenceAtEveryLengthAndMisalignment) {
  for (const Skip skip : {Skip::zero, Skip::pass}) {
    expect_forward_matches_reference<float>(skip, 0x1p-24);  // one rounding
    expect_forward_matches_reference<bf16>(skip, 0x1p-8);
  }
}

TEST(Combine, ASkippedTokenIsZeroInTheCurrentLayout) {
  Context ctx;
  std::vector<float> y{9, 9}, none{1, 2}, gate{0.5f};
  std::vector<int32_t> only{0}, all_skip{0, 0, 1};
  combine_forward(ctx, view(y, {1, 2}), view(none, {1, 2}), Tensor(), view(gate, {1}),
                  view(only, {1}), view(all_skip, {3}), Skip::zero);
  EXPECT_EQ(y, (std::vector<float>{0, 0}));
}

TEST(Combine, ASkippedTokenPassesItsInputInTheOriginalLayout) {
  Context ctx;
  std::vector<float> y{9, 9}, none{1, 2}, h{10, 20}, gate{0.5f};
  std::vector<int32_t> only{0}, all_skip{0, 0, 1};
  combine_forward(ctx, view(y, {1, 2}), view(none, {1, 2}), view(h, {1, 2}), view(gate, {1}),
                  view(only, {1}), view(all_skip, {3}), Skip::pass);
  EXPECT_EQ(y, (std::vector<float>{5, 10}));
}

TEST(Combine, NoTokensIsNoWork) {
  Context ctx;
  std::vector<float> none;
  std::vector<int32_t> empty, zeros(E + 2);
  combine_forward(ctx, view(none, {0, 4}), view(none, {0, 4}), view(none, {0, 4}), view(none, {0}),
                  view(empty, {0}), view(zeros, {E + 2}), Skip::pass);
}

TEST(Combine, IsTheSameOnAnyNumberOfThreads) {
  Context ctx;
  const int64_t tokens = 100, D = 37;
  auto expert_out = cast<float>(random_values(tokens * D, 1)),
       dy = cast<float>(random_values(tokens * D, 2));
  auto h = cast<float>(random_values(tokens * D, 3)), gate = cast<float>(random_values(tokens, 4));
  std::vector<int32_t> reversed(tokens), ends{0, 60, 80, 100};
  for (int64_t i = 0; i < tokens; ++i) reversed[i] = static_cast<int32_t>(tokens - 1 - i);
  expect_same_bits_on_1_and_2_threads([&] {
    std::vector<float> y(tokens * D), dexpert(tokens * D), dh(tokens * D), dgate(tokens);
    combine_forward(ctx, view(y, {tokens, D}), view(expert_out, {tokens, D}), view(h, {tokens, D}),
                    view(gate, {tokens}), view(reversed, {tokens}), view(ends, {4}), Skip::pass);
    combine_backward(ctx, view(dexpert, {tokens, D}), view(dh, {tokens, D}), view(dgate, {tokens}),
                     view(dy, {tokens, D}), view(expert_out, {tokens, D}), view(h, {tokens, D}),
                     view(gate, {tokens}), view(reversed, {tokens}), view(ends, {4}), Skip::pass);
    y.insert(y.end(), dexpert.begin(), dexpert.end());
    y.insert(y.end(), dh.begin(), dh.end());
    y.insert(y.end(), dgate.begin(), dgate.end());
    return y;
  });
}

}  // namespace
}  // namespace zaya
