#include "ops/cca/history.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/oracle.h"

namespace zaya {
namespace {

TEST(History, KeepsTheLastRowsOfEachSequence) {
  Context ctx;
  std::vector<float> history{-3, -2, -1, /* second sequence */ -13, -12, -11};
  std::vector<float> in{0, 1, 2, 3, 4, /* second sequence */ 10};
  const std::vector<int32_t> bounds{0, 5, 6};
  history_append(ctx, test::view(history, {2, 3, 1}), test::view(in, {6, 1}), {bounds});
  EXPECT_EQ(history, (std::vector<float>{2, 3, 4, -12, -11, 10}));
}

TEST(History, AppendingInPiecesEqualsAppendingAtOnce) {
  Context ctx;
  std::vector<float> in(2 * 9);
  std::iota(in.begin(), in.end(), 1.0f);
  std::vector<float> at_once(4 * 2), in_pieces(4 * 2);
  const auto append = [&](std::vector<float>& history, int64_t begin, int32_t count) {
    const std::vector<int32_t> bounds{0, count};
    history_append(ctx, test::view(history, {1, 4, 2}),
                   test::view(in, {9, 2}).row_range(begin, begin + count), {bounds});
  };
  append(at_once, 0, 9);
  append(in_pieces, 0, 1);
  append(in_pieces, 1, 2);
  append(in_pieces, 3, 6);
  EXPECT_EQ(in_pieces, at_once);
}

TEST(History, OfNoRowsRemembersNothing) {
  Context ctx;
  std::vector<float> history, in{1, 2};
  const std::vector<int32_t> bounds{0, 2};
  history_append(ctx, test::view(history, {1, 0, 1}), test::view(in, {2, 1}), {bounds});
  EXPECT_TRUE(history.empty());
}

}  // namespace
}  // namespace zaya
