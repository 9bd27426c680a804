// A small tokenizer.json may not make texts so much longer that they take all memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tokenizer.h"
#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::HasSubstr;

std::string repeated(const std::string& step, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + step;
  return list;
}

// What opening a file with this member says.
std::string error_with(const std::string& member) {
  const std::string file =
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, )" + member + "}";
  return error_of([&] { make_hf_tokenizer(file, "t.json"); });
}

std::string normalizers(const std::string& step, int count) {
  return error_with(R"("normalizer": {"type": "Sequence", "normalizers": [)" +
                    repeated(step, count) + "]}");
}

const std::string kDouble = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
const std::string kShorten =
    R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})";
const std::string kBetweenAll =
    R"({"type": "Replace", "pattern": {"Regex": "x*"}, "content": "1234567"})";

TEST(HfGrowth, StepsThatDoubleATextAreCounted) {
  EXPECT_EQ(normalizers(kDouble, 12), "");
  EXPECT_EQ(normalizers(kDouble, 13),
            "t.json: normalizer.normalizers[12]: wanted steps that make a text at most 4096 times "
            "longer, got more");
}

TEST(HfGrowth, APatternThatCanMatchNothingPutsTextEverywhere) {
  EXPECT_EQ(normalizers(kBetweenAll, 4), "");
  EXPECT_THAT(normalizers(kBetweenAll, 5), HasSubstr("4096 times"));
}

TEST(HfGrowth, StepsThatShortenATextAreFree) { EXPECT_EQ(normalizers(kShorten, 200), ""); }

TEST(HfGrowth, StepsAreFew) {
  EXPECT_THAT(normalizers(kShorten, 257), HasSubstr("at most 256 steps"));
}

TEST(HfGrowth, PreTokenizersAreBounded) {
  EXPECT_THAT(error_with(R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [)" +
                         repeated(R"({"type": "ByteLevel"})", 7) + "]}"),
              HasSubstr("pretokenizers[6]: wanted steps"));
}

TEST(HfGrowth, DecodersAreBounded) {
  EXPECT_THAT(
      error_with(R"("decoder": {"type": "Sequence", "decoders": [)" + repeated(kDouble, 13) + "]}"),
      HasSubstr("decoders[12]: wanted steps"));
}

}  // namespace
}  // namespace zaya
