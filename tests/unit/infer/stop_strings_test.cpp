#include "infer/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"

namespace zaya {
namespace {

// What comes out of pieces of `size` bytes.
std::string written(const std::vector<std::string>& stops, std::string_view text, size_t size) {
  StopStrings strings(stops);
  std::string out;
  for (; !text.empty() && !strings.found(); text.remove_prefix(std::min(size, text.size())))
    out += strings.push(text.substr(0, size));
  return out + strings.finish();
}

// The definition: up to the first byte at which a stop string is complete, less the longest one.
std::string defined(const std::vector<std::string>& stops, std::string_view text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops)
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest > 0) return std::string(text.substr(0, end - longest));
  }
  return std::string(text);
}

TEST(StopStrings, EveryTextOfTwoLettersIsCutAsDefinedHoweverItComes) {
  const std::vector<std::vector<std::string>> cases = {{},           {"a"},         {"ab"},
                                                       {"aab"},      {"abab"},      {"aabaaab"},
                                                       {"abb", "b"}, {"bba", "ab"}, {"abba", "bb"}};
  for (const auto& stops : cases) {
    for (int length = 0; length <= 9; ++length) {
      for (int bits = 0; bits < 1 << length; ++bits) {
        std::string text;
        for (int i = 0; i < length; ++i) text += bits >> i & 1 ? 'b' : 'a';
        for (const size_t size : {1, 2, 4, 9})
          ASSERT_EQ(written(stops, text, size), defined(stops, text)) << text << " " << size;
      }
    }
  }
}

TEST(StopStrings, HoldsBackOnlyWhatCouldBegin) {
  StopStrings strings({"END"});
  EXPECT_EQ(strings.push("the E"), "the ");
  EXPECT_EQ(strings.push("N"), "");
  EXPECT_EQ(strings.push("E"), "EN");  // only the last E may still begin one
  EXPECT_EQ(strings.push("ND and more"), "");
  EXPECT_TRUE(strings.found());
  EXPECT_EQ(strings.finish(), "");
}

TEST(StopStrings, WhatWaitedComesAtTheEnd) {
  StopStrings strings({"END"});
  EXPECT_EQ(strings.push("the EN"), "the ");
  EXPECT_EQ(strings.finish(), "EN");
}

TEST(StopStrings, EmptyOrDamagedOnesAreRefused) {
  for (const std::string stop : {"", "\xff", "\x80 end"}) {
    EXPECT_THROW(check_stop_strings({"x", stop}, "--stop"), Error);
  }
  EXPECT_NO_THROW(check_stop_strings({"x", "\n\n", "日"}, "--stop"));
}

}  // namespace
}  // namespace zaya
