// Tokenizer files from strangers: an Error or a tokenizer that works, never a crash.

#include <random>

#include "data/sentencepiece_model.h"
#include "data/tokenizer.h"
#include "data/train_tokenizer.h"
#include "files.h"

namespace zaya {
namespace {

using test::contains;
using test::error_of;
using test::TemporaryFolder;

const std::string& model_bytes() {
  static const std::string bytes = [] {
    const TemporaryFolder folder;
    const std::string input = folder.file("a.txt", "some words, words and more words to learn\n\n");
    train_tokenizer({input}, 290, folder / "a.model", {}, [](auto, double) {});
    return read_file(folder / "a.model");
  }();
  return bytes;
}

// Fields of protocol buffers, written by hand.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}
std::string number_field(uint32_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string bytes_field(uint32_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string piece(const std::string& text, uint64_t type) {
  return bytes_field(1, bytes_field(1, text) + number_field(3, type));
}
const std::string kUnknown = piece("<unk>", 2);

std::string error_for(const std::string& bytes) {
  return error_of([&] { make_sentencepiece_tokenizer(bytes, "m.model"); });
}

TEST(HostileModel, EveryTruncationIsAnErrorOrAWholeModel) {
  const std::string& whole = model_bytes();
  int refused = 0;
  for (size_t size = 0; size < whole.size(); size += 1 + size / 40) {
    try {
      const auto tokenizer = make_sentencepiece_tokenizer(whole.substr(0, size), "m.model");
      tokenizer->encode("some words");
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(HostileModel, FlippedBytesNeverCrash) {
  std::mt19937 random(11);
  for (int i = 0; i < 150; ++i) {
    std::string bytes = model_bytes();
    for (int flips = 0; flips < 3; ++flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    try {
      make_sentencepiece_tokenizer(bytes, "m.model")->encode("some words\n\n\xff");
    } catch (const Error&) {
    }
  }
}

TEST(HostileModel, RefusesWhatIsNoModel) {
  EXPECT_TRUE(contains(error_for(""), "without pieces"));
  EXPECT_TRUE(contains(error_for("hello, I am text"), "m.model"));
  EXPECT_TRUE(contains(error_for(std::string(100, '\xff')), "m.model"));
}

TEST(HostileModel, RefusesALengthBeyondTheFile) {
  EXPECT_TRUE(contains(error_for(varint(1 << 3 | 2) + varint(~uint64_t{0}) + "x"), "truncated"));
}

TEST(HostileModel, RefusesBrokenPieces) {
  EXPECT_TRUE(contains(error_for(kUnknown + piece("", 1)), "piece 1: an empty piece"));
  EXPECT_TRUE(contains(error_for(kUnknown + piece("\xff", 1)), "UTF-8"));
  EXPECT_TRUE(contains(error_for(kUnknown + piece(std::string("a\0b", 3), 1)), "zero bytes"));
  EXPECT_TRUE(contains(error_for(kUnknown + piece("a", 77)), "piece type"));
  EXPECT_TRUE(contains(error_for(kUnknown + piece("a", 1) + piece("a", 1)), "m.model"));
  EXPECT_TRUE(contains(error_for(kUnknown + piece("<0x4G>", 6)), "byte piece"));
  EXPECT_TRUE(contains(error_for(kUnknown + piece("\x1b[2J", 6)), R"("\u001b[2J")"));
}

TEST(HostileModel, RefusesAScoreThatIsNoNumber) {
  const std::string nan("\x00\x00\xc0\x7f", 4);
  const std::string bad = bytes_field(1, bytes_field(1, "a") + varint(2 << 3 | 5) + nan);
  EXPECT_TRUE(contains(error_for(kUnknown + bad), "finite score"));
}

TEST(HostileModel, RefusesNoneOrTwoUnknownPieces) {
  EXPECT_TRUE(contains(error_for(piece("a", 1)), "one piece of type unknown, got 0"));
  EXPECT_TRUE(contains(error_for(kUnknown + piece("x", 2)), "got 2"));
}

TEST(HostileModel, RefusesKindsItCannotEncode) {
  EXPECT_TRUE(contains(error_for(kUnknown + bytes_field(2, number_field(3, 4))), "model type"));
}

// Not hostile, but foreign: a model without byte pieces that puts a space before the text.
TEST(ForeignModel, LeavesOutTheSpaceThatItAddedItself) {
  std::string bytes = kUnknown;
  for (const char* text : {"\xe2\x96\x81", "a", "b",
                           "\xe2\x96\x81"
                           "a"})
    bytes += piece(text, 1);
  const auto tokenizer = make_sentencepiece_tokenizer(bytes, "m.model");
  EXPECT_TRUE(tokenizer->adds_leading_space());
  EXPECT_FALSE(tokenizer->exact());
  EXPECT_EQ(tokenizer->bos(), std::nullopt);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ab a")), "ab a");
}

// A normaliser table: [size of the trie][units][strings].
std::string table(const std::vector<uint32_t>& first_units, const std::string& strings) {
  std::vector<uint32_t> units(256, 0);
  std::copy(first_units.begin(), first_units.end(), units.begin());
  const uint32_t bytes = static_cast<uint32_t>(4 * units.size());
  std::string blob(reinterpret_cast<const char*>(&bytes), 4);
  blob.append(reinterpret_cast<const char*>(units.data()), bytes);
  return blob + strings;
}
std::string error_for_table(const std::string& blob) {
  return error_for(kUnknown + bytes_field(3, bytes_field(2, blob)));
}

TEST(HostileModel, RefusesNormaliserTablesThatPointOutside) {
  const std::string strings("x\0", 2);
  EXPECT_TRUE(contains(error_for_table("abc"), "normaliser table"));
  EXPECT_TRUE(contains(error_for_table(std::string("\xff\xff\xff\x7f") + strings), "a trie of"));
  EXPECT_TRUE(contains(error_for_table(table({}, "unended")), "does not end"));
  EXPECT_TRUE(contains(error_for_table(table({1u << 20 << 10}, strings)), "refers to unit"));
  EXPECT_TRUE(contains(error_for_table(table({0, 0x80000000u | 99}, strings)), "to string 99"));
  EXPECT_TRUE(contains(error_for_table(table({0x100u | 1u << 10, 99}, strings)), "leaf"));
}

}  // namespace
}  // namespace zaya
