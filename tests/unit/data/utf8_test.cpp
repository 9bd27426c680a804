#include "data/utf8.h"

#include <gtest/gtest.h>

#include "data/stream_decoder.h"
#include "data/tokenizer.h"

namespace zaya {
namespace {

TEST(Utf8, TakesCharactersOfOneToFourBytes) {
  for (const std::string_view text : {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(utf8_step(text).kind, Utf8Step::character);
    EXPECT_EQ(utf8_step(text).bytes, text.size());
    EXPECT_TRUE(is_utf8(text));
  }
}

TEST(Utf8, SeesThatACharacterIsNotOverYet) {
  for (const std::string_view text : {"\xc3", "\xe2", "\xe2\x82", "\xf0\x9f", "\xf0\x9f\x98"}) {
    EXPECT_EQ(utf8_step(text).kind, Utf8Step::incomplete);
    EXPECT_FALSE(is_utf8(text));
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndWhatIsBeyondUnicode) {
  for (const std::string_view text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\x80", "\xed\xa0\x80", "\xf0\x8f\x80\x80",
        "\xf4\x90\x80\x80", "\xf5", "\xff"}) {
    EXPECT_EQ(utf8_step(text).kind, Utf8Step::invalid);
  }
}

std::string stream(std::string_view text, std::vector<std::string>* parts = nullptr) {
  const auto tokenizer = make_byte_tokenizer();
  StreamDecoder decoder(*tokenizer);
  std::string all;
  for (const int32_t id : tokenizer->encode(text)) {
    const std::string part = decoder.push(id);
    EXPECT_TRUE(is_utf8(part));
    if (parts != nullptr) parts->push_back(part);
    all += part;
  }
  return all + decoder.finish();
}

TEST(StreamDecoder, WaitsForTheLastByteOfACharacter) {
  std::vector<std::string> parts;
  stream("a\xe2\x82\xac", &parts);
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "", "", "\xe2\x82\xac"}));
}

TEST(StreamDecoder, GivesBackWellFormedTextUnchanged) {
  const std::string text = "na\xc3\xafve \xf0\x9f\x98\x80\n\n\t end";
  EXPECT_EQ(stream(text), text);
}

TEST(StreamDecoder, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(stream("a\xff\xe2\x82z"), "a\xef\xbf\xbd\xef\xbf\xbdz");
}

TEST(StreamDecoder, ReplacesAHalfCharacterAtTheEnd) {
  EXPECT_EQ(stream("a\xf0\x9f"), "a\xef\xbf\xbd");
}

TEST(StreamDecoder, SaysNothingForSpecialTokens) {
  const auto tokenizer = make_byte_tokenizer();
  StreamDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.push(*tokenizer->bos()) + decoder.push('x') + decoder.push(*tokenizer->eos()),
            "x");
}

}  // namespace
}  // namespace zaya
