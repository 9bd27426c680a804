#include <gtest/gtest.h>

#include <random>

#include "ops/experts/dispatch.h"
#include "ops/experts/dispatch_reference.h"
#include "support/oracle.h"
#include "support/placed.h"

namespace zaya {
namespace {

using namespace test;

struct Sorted {
  std::vector<int32_t> order, offsets;
  friend bool operator==(const Sorted&, const Sorted&) = default;
};

Sorted sort(std::vector<int32_t> choice, int64_t E) {
  Context ctx;
  const auto T = static_cast<int64_t>(choice.size());
  Sorted out{std::vector<int32_t>(T, -7), std::vector<int32_t>(E + 2, -7)};
  sort_by_expert(ctx, view(out.order, {T}), view(out.offsets, {E + 2}), view(choice, {T}));
  return out;
}

Sorted reference_sort(const std::vector<int32_t>& choice, int64_t E) {
  Sorted out{std::vector<int32_t>(choice.size()), std::vector<int32_t>(E + 2)};
  reference::sort_by_expert(out.order.data(), out.offsets.data(), choice.data(),
                            static_cast<int64_t>(choice.size()), E);
  return out;
}

std::vector<int32_t> random_choices(int64_t T, int64_t E, uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<int32_t> choice(T);
  for (int32_t& c : choice) c = static_cast<int32_t>(engine() % (E + 1));
  return choice;
}

TEST(SortByExpert, MatchesTheReference) {
  for (const int64_t E : {1, 2, 16, 256}) {
    for (const int64_t T : {1, 2, 17, 1000}) {
      const std::vector<int32_t> choice = random_choices(T, E, E * 1000 + T);
      EXPECT_EQ(sort(choice, E), reference_sort(choice, E)) << E << " " << T;
    }
  }
}

TEST(SortByExpert, KeepsTheOrderOfTokensWithinAnExpert) {
  const Sorted out = sort({1, 0, 1, 2, 0, 1}, 2);
  EXPECT_EQ(out.order, (std::vector<int32_t>{1, 4, 0, 2, 5, 3}));
  EXPECT_EQ(out.offsets, (std::vector<int32_t>{0, 2, 5, 6}));
}

TEST(SortByExpert, PutsEveryTokenInOneExpertWhenAllChooseIt) {
  const Sorted out = sort({1, 1, 1}, 3);
  EXPECT_EQ(out.order, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(out.offsets, (std::vector<int32_t>{0, 0, 3, 3, 3}));
}

TEST(SortByExpert, LeavesEveryExpertEmptyWhenAllSkip) {
  const Sorted out = sort({2, 2, 2}, 2);
  EXPECT_EQ(out.order, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(out.offsets, (std::vector<int32_t>{0, 0, 0, 3}));
}

TEST(SortByExpert, OfNoTokensHasZeroOffsets) {
  EXPECT_EQ(sort({}, 3).offsets, std::vector<int32_t>(5, 0));
}

TEST(SortByExpert, HandlesTwoMillionTokens) {
  const std::vector<int32_t> choice = random_choices(2'000'000, 16, 1);
  const Sorted out = sort(choice, 16);
  EXPECT_EQ(out.offsets.back(), 2'000'000);
  for (size_t i = 1; i < out.order.size(); ++i) {
    const int32_t before = choice[out.order[i - 1]], here = choice[out.order[i]];
    ASSERT_TRUE(before < here || (before == here && out.order[i - 1] < out.order[i]));
  }
}

TEST(SortByExpert, RefusesAChoiceOutOfRange) {
  EXPECT_THROW(sort({0, 3}, 2), ContractError);
  EXPECT_THROW(sort({0, -1}, 2), ContractError);
}

// gather_rows and scatter_rows for rows of From into rows of To, at every length and misalignment.
// The reference copies, and so does the op: f32 and bf16 values agree exactly after one rounding.
template <class To, class From>
void expect_gather_matches_reference() {
  Context ctx;
  const int64_t T = 7, E = 2;
  Sorted sorted = sort({1, 2, 0, 0, 2, 1, 0}, E);
  const int64_t count = sorted.offsets[E];
  for (int64_t D = 1; D <= kMaxLength; ++D) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto in = cast<From>(random_values(T * D, D));
      Placed<From> from(in, {T, D}, offset);
      Placed<To> out(cast<To>(std::vector<double>(T * D, 5.0)), {T, D}, offset + 1);
      gather_rows(ctx, out.tensor(), from.tensor(), view(sorted.order, {T}),
                  view(sorted.offsets, {E + 2}));
      std::vector<double> wanted(T * D, 5.0);
      reference::gather_rows(wanted.data(), widen(in).data(), sorted.order.data(), count, D);
      ASSERT_EQ(widen(out.values()), widen(cast<To>(wanted))) << D << " " << offset;
    }
  }
}

TEST(GatherRows, MatchesTheReferenceAndLeavesTheRowsOfSkippedTokensAlone) {
  expect_gather_matches_reference<float, float>();
  expect_gather_matches_reference<float, bf16>();
  expect_gather_matches_reference<bf16, float>();
  expect_gather_matches_reference<bf16, bf16>();
}

template <class From>
void expect_scatter_matches_reference() {
  Context ctx;
  const int64_t T = 7, E = 2;
  Sorted sorted = sort({1, 2, 0, 0, 2, 1, 0}, E);
  const int64_t count = sorted.offsets[E];
  for (int64_t D = 1; D <= kMaxLength; ++D) {
    for (const int64_t offset : {0, 1, 3}) {
      const auto in = cast<From>(random_values(T * D, D));
      Placed<From> from(in, {T, D}, offset);
      Placed<float> out(std::vector<float>(T * D, 5.0f), {T, D}, offset + 1);
      scatter_rows(ctx, out.tensor(), from.tensor(), view(sorted.order, {T}),
                   view(sorted.offsets, {E + 2}));
      std::vector<double> wanted(T * D);
      reference::scatter_rows(wanted.data(), widen(in).data(), sorted.order.data(), count, T, D);
      ASSERT_EQ(widen(out.values()), wanted) << D << " " << offset;
    }
  }
}

TEST(ScatterRows, MatchesTheReferenceAndZeroesSkippedTokens) {
  expect_scatter_matches_reference<float>();
  expect_scatter_matches_reference<bf16>();
}

TEST(ScatterRows, RefusesAnOrderThatPointsOutside) {
  Context ctx;
  std::vector<float> out(4), in(4);
  std::vector<int32_t> order{0, 2}, offsets{0, 2, 2};
  EXPECT_THROW(
      scatter_rows(ctx, view(out, {2, 2}), view(in, {2, 2}), view(order, {2}), view(offsets, {3})),
      ContractError);
}

TEST(GatherRows, RefusesOffsetsBeyondTheTokens) {
  Context ctx;
  std::vector<float> out(4), in(4);
  std::vector<int32_t> order{0, 1}, offsets{0, 3, 3};
  EXPECT_THROW(
      gather_rows(ctx, view(out, {2, 2}), view(in, {2, 2}), view(order, {2}), view(offsets, {3})),
      ContractError);
}

TEST(ScatterRows, OfNoTokensIsNoWork) {
  Context ctx;
  std::vector<float> none;
  Sorted sorted = sort({}, 2);
  scatter_rows(ctx, view(none, {0, 8}), view(none, {0, 8}), view(sorted.order, {0}),
               view(sorted.offsets, {4}));
}

}  // namespace
}  // namespace zaya
