// Files that no honest program writes. Each must be refused with an Error that says why; none may
// crash, read outside the file or be accepted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "checkpoint/safetensors.h"
#include "support/temp_folder.h"

namespace zaya {
namespace {

using ::testing::HasSubstr;

std::string length_prefix(uint64_t length) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length);
}

// A file of this header and so many bytes of data.
std::string file_of(std::string_view header, size_t data_bytes) {
  return length_prefix(header.size()) + std::string(header) + std::string(data_bytes, 'd');
}

std::string open_error(std::string_view bytes) {
  const TempFolder folder;
  write_quickly(folder / "a", bytes);
  return error_of([&] { SafetensorsFile::open(folder / "a"); });
}

// Two tensors of 8 and 12 bytes.
constexpr std::string_view kValidHeader =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"F32","shape":[3,1],"data_offsets":[8,20]},"__metadata__":{"k":"v"}})";

struct Hostile {
  std::string name;
  std::string bytes;
  std::string error;  // what the message has to say
};

// For test names and messages, which would show the bytes of the struct otherwise.
void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

std::string one_tensor(std::string_view dtype, std::string_view shape, std::string_view offsets,
                       size_t data_bytes) {
  return file_of(
      fmt::format(R"({{"a":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets),
      data_bytes);
}

std::string two_tensors(std::string_view first, std::string_view second, size_t data_bytes) {
  return file_of(fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},)"
                             R"("b":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
                             first, second),
                 data_bytes);
}

std::vector<Hostile> lengths() {
  const std::string valid = file_of(kValidHeader, 20);
  const std::string rest = valid.substr(8);
  return {
      {"Empty", "", "got 0 bytes"},
      {"SevenBytes", valid.substr(0, 7), "got 7 bytes"},
      {"LengthOnly", valid.substr(0, 8), "header length"},
      {"LengthZero", length_prefix(0) + rest, "header: "},
      {"LengthOne", length_prefix(1) + rest, "header: "},
      {"LengthOneTooMany", length_prefix(rest.size() + 1) + rest, "header length"},
      {"LengthWraps", length_prefix(~uint64_t{0}) + rest, "got 18446744073709551615"},
      {"LengthWrapsToNothing", length_prefix(~uint64_t{0} - 7) + rest, "header length"},
      {"LengthNegative32", length_prefix(0xffffffff80000000u) + rest, "header length"},
      {"LengthAboveTheLimit", length_prefix(100'000'001) + rest, "at most 100000000"},
      {"OneByteShort", valid.substr(0, valid.size() - 1), "b"},
      {"OneByteMore", valid + "x", "bytes 20 to 21 of the data belong to no tensor"},
  };
}

std::vector<Hostile> shapes() {
  return {
      {"Rank5", one_tensor("\"U8\"", "[1,1,1,1,4]", "[0,4]", 4), "at most 4 dimensions"},
      {"ProductOverflows", one_tensor("\"U8\"", "[4294967296,4294967296]", "[0,0]", 0), "2^63"},
      {"BytesOverflow", one_tensor("\"F64\"", "[2305843009213693952]", "[0,0]", 0), "2^63"},
      {"OverflowBehindAZero", one_tensor("\"U8\"", "[0,4294967296,4294967296]", "[0,0]", 0),
       "2^63"},
      {"ProductWrapsToTheSize", one_tensor("\"U8\"", "[4611686018427387905,4]", "[0,4]", 4),
       "2^63"},
      {"NegativeDimension", one_tensor("\"U8\"", "[-4]", "[0,4]", 4), "shape[0]"},
      {"TwoNegatives", one_tensor("\"U8\"", "[-2,-2]", "[0,4]", 4), "shape[0]"},
      {"FloatDimension", one_tensor("\"U8\"", "[4.0]", "[0,4]", 4), "got 4.0"},
      {"HugeDimension", one_tensor("\"U8\"", "[18446744073709551615]", "[0,4]", 4), "shape[0]"},
      {"TextDimension", one_tensor("\"U8\"", "[\"4\"]", "[0,4]", 4), "shape[0]"},
      {"ShapeNoList", one_tensor("\"U8\"", "4", "[0,4]", 4), "wanted an array"},
      {"ShapeNull", one_tensor("\"U8\"", "null", "[0,4]", 4), "got nothing"},
      {"ShapeTooSmall", one_tensor("\"F32\"", "[1]", "[0,8]", 8), "the 4 bytes of F32 [1]"},
      {"ShapeTooLarge", one_tensor("\"F32\"", "[3]", "[0,8]", 8), "the 12 bytes of F32 [3]"},
      {"UnknownType", one_tensor("\"F31\"", "[1]", "[0,4]", 4), "got \"F31\""},
      {"TypeNoText", one_tensor("32", "[1]", "[0,4]", 4), "dtype: wanted a string"},
  };
}

std::vector<Hostile> offsets() {
  return {
      {"OffsetsBeyondTheEnd", one_tensor("\"U8\"", "[8]", "[0,8]", 4), "data_offsets[1]"},
      {"BothBeyondTheEnd", one_tensor("\"U8\"", "[4]", "[4,8]", 4), "data_offsets[1]"},
      {"OffsetsReversed", one_tensor("\"U8\"", "[4]", "[4,0]", 4), "a begin and an end"},
      {"OffsetNegative", one_tensor("\"U8\"", "[8]", "[-4,4]", 4), "data_offsets[0]"},
      {"OffsetFloat", one_tensor("\"U8\"", "[4]", "[0.0,4.0]", 4), "data_offsets[0]"},
      {"OffsetWraps", one_tensor("\"U8\"", "[4]", "[18446744073709551612,4]", 4), "got 1844"},
      {"OffsetText", one_tensor("\"U8\"", "[4]", "[\"0\",4]", 4), "data_offsets[0]"},
      {"OneOffset", one_tensor("\"U8\"", "[4]", "[0]", 4), "a begin and an end"},
      {"ThreeOffsets", one_tensor("\"U8\"", "[4]", "[0,4,4]", 4), "a begin and an end"},
      {"NoOffsets", file_of(R"({"a":{"dtype":"U8","shape":[4]}})", 4), "got nothing"},
      {"SameBytesTwice", two_tensors("[0,4]", "[0,4]", 4), "overlaps"},
      {"Overlap", two_tensors("[0,4]", "[3,7]", 7), "overlaps"},
      {"HoleAtTheStart", two_tensors("[1,5]", "[5,9]", 9), "bytes 0 to 1"},
      {"HoleInTheMiddle", two_tensors("[0,4]", "[5,9]", 9), "bytes 4 to 5"},
      {"HoleAtTheEnd", two_tensors("[0,4]", "[4,8]", 9), "bytes 8 to 9"},
  };
}

std::vector<Hostile> headers() {
  const std::string entry = R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  return {
      {"DuplicateName", file_of("{\"a\":" + entry + ",\"a\":" + entry + "}", 4), "comes twice"},
      {"DuplicateEscaped", file_of("{\"a\":" + entry + ",\"\\u0061\":" + entry + "}", 4),
       "comes twice"},
      {"DuplicateField",
       file_of(R"({"a":{"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]}})", 4),
       "comes twice"},
      {"DeepLists", file_of(std::string(1'000'000, '['), 0), "nested levels"},
      {"DeepObjects",
       [] {
         std::string text;
         for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
         return file_of(text, 0);
       }(),
       "nested levels"},
      {"BadUtf8Name", file_of("{\"\xff\xfe\":" + entry + "}", 4), "UTF-8"},
      {"OverlongUtf8Name", file_of("{\"\xc0\xaf\":" + entry + "}", 4), "UTF-8"},
      {"BadUtf8Type",
       file_of("{\"a\":{\"dtype\":\"\x80\",\"shape\":[],\"data_offsets\":[0,1]}}", 1), "UTF-8"},
      {"NoJson", file_of(std::string(100, '\0'), 4), "header: "},
      {"List", file_of("[]", 0), "wanted an object"},
      {"Number", file_of("17", 0), "wanted an object"},
      {"TwoDocuments", file_of("{}{}", 0), "header: "},
      {"Comment", file_of("{}//", 0), "header: "},
      {"UnclosedObject", file_of("{\"a\":" + entry, 4), "header: "},
      {"TensorNoObject", file_of(R"({"a":[0,4]})", 4), "wanted an object"},
      {"MetadataNoObject", file_of(R"({"__metadata__":["x"]})", 0), "__metadata__"},
      {"MetadataNoText", file_of(R"({"__metadata__":{"k":1}})", 0), "wanted a string"},
      {"HugeNumber", one_tensor("\"U8\"", "[1e999]", "[0,4]", 4), "header: "},
  };
}

class HostileFile : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileFile, IsRefusedWithTheReason) {
  EXPECT_THAT(open_error(GetParam().bytes), HasSubstr(GetParam().error));
}

std::string name_of_case(const ::testing::TestParamInfo<Hostile>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Lengths, HostileFile, ::testing::ValuesIn(lengths()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Shapes, HostileFile, ::testing::ValuesIn(shapes()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Offsets, HostileFile, ::testing::ValuesIn(offsets()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Headers, HostileFile, ::testing::ValuesIn(headers()), name_of_case);

TEST(HostileSafetensors, TheFilesTheyAreMadeFromAreAccepted) {
  EXPECT_EQ(open_error(file_of(kValidHeader, 20)), "");
  EXPECT_EQ(open_error(one_tensor("\"U8\"", "[4]", "[0,4]", 4)), "");
  EXPECT_EQ(open_error(two_tensors("[4,8]", "[0,4]", 8)), "");
}

TEST(HostileSafetensors, EveryTruncationIsRefused) {
  const std::string valid = file_of(kValidHeader, 20);
  const TempFolder folder;
  for (size_t size = 0; size < valid.size(); ++size) {
    write_quickly(folder / "a", valid.substr(0, size));
    EXPECT_THROW(SafetensorsFile::open(folder / "a"), Error) << size;
  }
}

// Reads every byte of every tensor, so that a bad view is a crash here and not later.
uint64_t sum_of_bytes(const SafetensorsFile& file) {
  uint64_t sum = 0;
  for (const std::string& name : file.names()) {
    const Tensor tensor = file.get(name);
    sum += xxh3(tensor.data, static_cast<size_t>(tensor.bytes()));
  }
  return sum;
}

std::string mutated(std::string bytes, std::mt19937& random) {
  // Structure and digits, which break more than arbitrary bytes do.
  constexpr std::string_view kPieces = "0123456789-.,:[]{}\" eE\\";
  for (uint32_t edits = 1 + random() % 4; edits > 0; --edits) {
    const size_t at = random() % bytes.size();
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = kPieces[random() % kPieces.size()];
        break;
      case 2:
        bytes.insert(at, 1, kPieces[random() % kPieces.size()]);
        break;
      case 3:
        bytes.erase(at, 1);
        break;
      case 4:
        bytes.insert(at, bytes.substr(at / 2, random() % 32));
        break;
    }
  }
  return bytes;
}

TEST(HostileSafetensors, RandomMutationsOpenOrAreRefusedButNeverCrash) {
  const std::string valid = file_of(kValidHeader, 20);
  const TempFolder folder;
  std::mt19937 random(20260101);
  int opened = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = mutated(valid, random);
    // Half of them with a length that fits again, or the header would rarely be looked at.
    if (i % 2 == 0 && bytes.size() > 28) bytes.replace(0, 8, length_prefix(bytes.size() - 28));
    write_quickly(folder / "a", bytes);
    try {
      sum_of_bytes(SafetensorsFile::open(folder / "a"));
      ++opened;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(opened, 20);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace zaya
