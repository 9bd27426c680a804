#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string parse_error(std::string_view text) {
  return error_of([&] { parse_json(text, "a.json"); });
}

// What reading `key` of a document says.
template <class Read>
std::string read_error(std::string_view text, Read read) {
  const Json json = parse_json(text, "config.json");
  return error_of([&] { read(JsonObject(json, "config.json")); });
}

std::string integer_error(std::string_view value, int64_t min = 1,
                          int64_t max = JsonObject::kMaxInteger) {
  return read_error(fmt::format("{{\"hidden_size\": {}}}", value),
                    [&](const JsonObject& object) { object.integer("hidden_size", min, max); });
}

TEST(ParseJson, SyntaxErrorsNameThePlace) {
  EXPECT_THAT(parse_error("{\"a\": 1,}"), StartsWith("a.json: parse error at line 1, column 9"));
  EXPECT_THAT(parse_error(""), StartsWith("a.json: "));
  EXPECT_THAT(parse_error("{} {}"), StartsWith("a.json: "));
}

TEST(ParseJson, ANameThatComesTwiceIsRefused) {
  EXPECT_EQ(parse_error(R"({"a": 1, "a": 2})"), "a.json: the name \"a\" comes twice in one object");
  EXPECT_THAT(parse_error(R"({"b": [{"a": 1, "\u0061": 2}]})"), HasSubstr("comes twice"));
}

TEST(ParseJson, TheSameNameInTwoObjectsIsFine) {
  EXPECT_EQ(parse_error(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})"), "");
}

TEST(ParseJson, DeepNestingIsRefusedWithoutExhaustingTheStack) {
  const std::string deep(10'000'000, '[');
  EXPECT_EQ(parse_error(deep), "a.json: wanted at most 64 nested levels, got more");
  EXPECT_EQ(parse_error(std::string(64, '[') + std::string(64, ']')), "");
}

TEST(ParseJson, BadUtf8IsRefused) {
  EXPECT_THAT(parse_error("{\"\xff\": 1}"), HasSubstr("UTF-8"));
  EXPECT_THAT(parse_error("{\"a\": \"\xc0\xaf\"}"), HasSubstr("UTF-8"));
}

TEST(ParseJson, NumbersTooLargeForAnyTypeAreRefused) {
  EXPECT_THAT(parse_error("[1e999]"), StartsWith("a.json: "));
}

TEST(ParseJsonFile, ErrorsBeginWithThePath) {
  const TempFolder folder;
  write_file_durably(folder / "x.json", "{");
  EXPECT_THAT(error_of([&] { parse_json_file(folder / "x.json"); }),
              StartsWith((folder / "x.json").string() + ": "));
}

TEST(JsonObject, IntegersSayWhatWasWantedAndWhatCame) {
  EXPECT_EQ(integer_error("\"abc\""),
            "config.json: hidden_size: wanted a positive integer, got \"abc\"");
  EXPECT_EQ(integer_error("0"), "config.json: hidden_size: wanted a positive integer, got 0");
  EXPECT_EQ(integer_error("9", 1, 8),
            "config.json: hidden_size: wanted an integer from 1 to 8, got 9");
}

TEST(JsonObject, IntegersAreNeverRoundedOrWrapped) {
  for (const std::string_view value : {"1.0", "1e3", "true", "null", "[1]", "9223372036854775808",
                                       "18446744073709551615", "99999999999999999999"})
    EXPECT_NE(integer_error(value), "") << value;
  EXPECT_EQ(integer_error("9223372036854775807"), "");
}

TEST(JsonObject, AMissingMemberIsNothing) {
  EXPECT_EQ(read_error("{}", [](const JsonObject& object) { object.string("name"); }),
            "config.json: name: wanted a string, got nothing");
}

TEST(JsonObject, FallbacksStandInForAbsentAndNullOnly) {
  const Json json = parse_json(R"({"null": null, "text": "x"})", "p");
  const JsonObject object(json, "p");
  EXPECT_EQ(object.integer_or("absent", 7), 7);
  EXPECT_EQ(object.integer_or("null", 7), 7);
  EXPECT_THROW(object.integer_or("text", 7), Error);
  EXPECT_EQ(object.number_or("absent", 0.5), 0.5);
  EXPECT_TRUE(object.boolean_or("absent", true));
  EXPECT_EQ(object.string_or("text", "y"), "x");
}

TEST(JsonObject, NestedObjectsKeepTheirPath) {
  EXPECT_EQ(read_error(R"({"rope": {"full": {"theta": "x"}}})",
                       [](const JsonObject& object) {
                         object.object("rope").object("full").number("theta");
                       }),
            "config.json: rope.full.theta: wanted a number, got \"x\"");
}

TEST(JsonObject, ListsNameTheElement) {
  const auto read = [](const JsonObject& object) { object.integers("a", 0, 10); };
  EXPECT_EQ(read_error(R"({"a": [1, 2, -3]})", read),
            "config.json: a[2]: wanted an integer from 0 to 10, got -3");
  EXPECT_EQ(read_error(R"({"a": 5})", read), "config.json: a: wanted an array, got 5");
}

TEST(JsonObject, ListsAreRead) {
  const Json json = parse_json(R"({"n": [1, 2], "s": ["x", "y"]})", "p");
  const JsonObject object(json, "p");
  EXPECT_THAT(object.integers("n"), ElementsAre(1, 2));
  EXPECT_THAT(object.strings("s"), ElementsAre("x", "y"));
}

TEST(JsonObject, TheDocumentItselfMustBeOne) {
  EXPECT_EQ(read_error("[1]", [](const JsonObject&) {}), "config.json: wanted an object, got [1]");
}

TEST(JsonObject, LongValuesAreShortenedInMessages) {
  const std::string error = integer_error("\"" + std::string(100000, 'x') + "\"");
  EXPECT_LT(error.size(), 200u);
}

TEST(JsonObject, LongValuesAreNotCutInsideACharacter) {
  for (int before = 0; before < 4; ++before) {
    const std::string text = std::string(before, 'x') + std::string(40, '-');
    std::string value;
    for (int i = 0; i < 40; ++i) value += "\xf0\x9f\x98\x80";
    const std::string error = integer_error("\"" + text + value + "\"");
    EXPECT_THAT(error, ::testing::EndsWith("\xf0\x9f\x98\x80...")) << before;
  }
}

TEST(JsonObject, KeysOutOfTheFileAreEscapedInMessages) {
  EXPECT_EQ(read_error(R"({"m": {"\u001b[2J": 1}})",
                       [](const JsonObject& object) { object.object("m").string("\x1b[2J"); }),
            R"(config.json: m.\u001b[2J: wanted a string, got 1)");
}

TEST(JsonQuoted, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(json_quoted("a\x1b[2J\n"), R"("a\u001b[2J\n")");
  EXPECT_EQ(json_quoted("a\x7f"), R"("a\u007f")");
  EXPECT_THAT(parse_error("{\"a\x7f\": 1, \"a\x7f\": 1}"), HasSubstr(R"("a\u007f")"));
  EXPECT_THAT(parse_error("{\"a\x7f\" 1}"), Not(HasSubstr("\x7f")));
  EXPECT_THAT(json_quoted("\xff"), Not(HasSubstr("\xff")));
}

}  // namespace
}  // namespace zaya
