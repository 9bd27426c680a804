#include "data/text_reader.h"

#include <zlib.h>
#include <zstd.h>

#include <random>

#include "files.h"

namespace zaya {
namespace {

using test::contains;
using test::error_of;
using test::TemporaryFolder;

std::vector<std::string> read_all(const std::vector<std::string>& paths, TextOptions options = {}) {
  TextReader reader(paths, std::move(options));
  std::vector<std::string> documents;
  std::string document;
  while (reader.next(document)) documents.push_back(document);
  EXPECT_EQ(reader.bytes_read(), reader.total_bytes());
  return documents;
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// Longer than every buffer on the way, and does not compress to nothing.
std::string long_text() {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 700000) text += fmt::format("line {}\n", random());
  return text;
}

TEST(TextReader, AFileIsOneDocumentByteForByte) {
  const TemporaryFolder folder;
  const std::string text = "a  b\r\n\n%\nlast\n\n";
  EXPECT_EQ(read_all({folder.file("a.txt", text)}), std::vector<std::string>{text});
}

TEST(TextReader, SplitsAtLinesThatHoldOnlyTheSeparator) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt", "one\n\ntwo\n%\n%\n 50 %\n%%\n%\r\nlast\n");
  EXPECT_EQ(read_all({path}, {.separator = "%"}),
            (std::vector<std::string>{"one\n\ntwo", " 50 %\n%%", "last"}));
}

TEST(TextReader, ReadsAllEntriesOfTheQuickstartCorpus) {
  const std::string path = ZAYA_SOURCE_DIR "/data/quickstart/heldout.txt";
  EXPECT_EQ(read_all({path}, {.separator = "%"}).size(), 115u);
}

TEST(TextReader, ReadsAFieldOfJsonLines) {
  const TemporaryFolder folder;
  const std::string path = folder.file(
      "a.jsonl",
      "{\"text\": \"one\\n\\u00e9\", \"id\": 1}\n\n{\"text\": \"\"}\n{\"text\":\"two\"}");
  EXPECT_EQ(read_all({path}), (std::vector<std::string>{"one\n\xc3\xa9", "two"}));
}

TEST(TextReader, ReadsTheFieldThatWasAskedFor) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.jsonl", "{\"text\": \"no\", \"body\": \"yes\"}\n");
  EXPECT_EQ(read_all({path}, {.field = "body"}), std::vector<std::string>{"yes"});
}

TEST(TextReader, ReadsGzipAndZstdOfEveryKind) {
  const TemporaryFolder folder;
  const std::string text = long_text();
  const std::string json = "{\"text\": \"in json\"}\n";
  EXPECT_EQ(
      read_all({folder.file("a.txt.gz", gzip(text)), folder.file("b.txt.zst", zstd(text)),
                folder.file("c.jsonl.gz", gzip(json)), folder.file("d.jsonl.zst", zstd(json))}),
      (std::vector<std::string>{text, text, "in json", "in json"}));
}

TEST(TextReader, ReadsGzipMembersAndZstdFramesOneAfterAnother) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_all({folder.file("a.txt.gz", gzip("one ") + gzip("") + gzip("two")),
                      folder.file("b.txt.zst", zstd("one ") + zstd("") + zstd("two"))}),
            (std::vector<std::string>{"one two", "one two"}));
}

TEST(TextReader, LeavesOutAByteOrderMark) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_all({folder.file("a.txt", "\xef\xbb\xbfhello")}),
            std::vector<std::string>{"hello"});
}

TEST(TextReader, EmptyFilesHoldNoDocument) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_all({folder.file("a.txt", ""), folder.file("a.jsonl", "")}).empty());
}

TEST(TextReader, CompressedDataCutAnywhereIsAnError) {
  const TemporaryFolder folder;
  for (const bool gz : {true, false}) {
    const std::string whole = gz ? gzip(long_text()) : zstd(long_text());
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{5}, whole.size() / 2, whole.size() - 1}) {
      const std::string name = gz ? "cut.txt.gz" : "cut.txt.zst";
      const std::string path = folder.file(name, whole.substr(0, size));
      EXPECT_TRUE(contains(error_of([&] { read_all({path}); }), "truncated")) << name << size;
    }
  }
}

TEST(TextReader, CompressedDataThatIsBrokenIsAnError) {
  const TemporaryFolder folder;
  std::string gz = gzip(long_text());
  std::string zst = zstd(long_text());
  gz[gz.size() - 6] ^= 1;  // the checksum at the end
  zst[zst.size() / 2] ^= 1;
  EXPECT_TRUE(contains(error_of([&] { read_all({folder.file("a.txt.gz", gz)}); }), "gzip data"));
  EXPECT_TRUE(contains(error_of([&] { read_all({folder.file("a.txt.zst", zst)}); }), "a.txt.zst"));
  EXPECT_TRUE(contains(error_of([&] { read_all({folder.file("b.txt.gz", "plain text")}); }),
                       "wanted gzip data"));
  EXPECT_TRUE(contains(error_of([&] { read_all({folder.file("b.txt.zst", "plain text")}); }),
                       "wanted zstd data"));
}

TEST(TextReader, ABadJsonLineIsNamed) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& second) {
    return error_of(
        [&] { read_all({folder.file("x.jsonl", "{\"text\": \"fine\"}\n" + second + "\n")}); });
  };
  EXPECT_TRUE(contains(error("{\"text\": "), "x.jsonl:2"));
  EXPECT_TRUE(contains(error("{\"body\": \"x\"}"), "x.jsonl:2"));
  EXPECT_TRUE(contains(error("{\"text\": 5}"), "text"));
  EXPECT_TRUE(contains(error("[]"), "x.jsonl:2"));
  EXPECT_TRUE(contains(error("{\"text\": \"\xff\"}"), "x.jsonl:2"));
}

TEST(TextReader, RefusesNamesItDoesNotKnowBeforeItReads) {
  const TemporaryFolder folder;
  const std::string good = folder.file("a.txt", "x");
  EXPECT_TRUE(contains(error_of([&] {
                         TextReader({good, folder / "b.parquet"}, {});
                       }),
                       "b.parquet"));
  EXPECT_TRUE(contains(error_of([&] { TextReader({good, folder / "no.txt"}, {}); }), "no.txt"));
  EXPECT_TRUE(contains(error_of([&] { TextReader({}, {}); }), "at least one"));
}

}  // namespace
}  // namespace zaya
