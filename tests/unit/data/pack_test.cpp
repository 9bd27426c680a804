#include "data/pack.h"

#include "data/token_store.h"
#include "files.h"

namespace zaya {
namespace {

using test::contains;
using test::error_of;
using test::TemporaryFolder;

PackSummary pack_bytes(const std::vector<std::string>& inputs, const std::string& prefix,
                       PackOptions options = {}) {
  return pack(inputs, *make_byte_tokenizer(), prefix, options, [](const PackProgress&) {});
}

std::vector<int32_t> tokens_of(const std::string& prefix) {
  const TokenStore store(prefix);
  std::vector<int32_t> ids(static_cast<size_t>(store.token_count()));
  store.copy(0, ids);
  return ids;
}

TEST(Pack, SurroundsDocumentsWithBosAndEos) {
  const TemporaryFolder folder;
  const std::string input = folder.file("a.txt", "ab\n%\nc\n");
  const PackSummary summary = pack_bytes({input}, folder / "out", {.text = {.separator = "%"}});
  EXPECT_EQ(tokens_of(folder / "out"), (std::vector<int32_t>{256, 'a', 'b', 257, 256, 'c', 257}));
  EXPECT_EQ(TokenStore(folder / "out").document_count(), 2);
  EXPECT_EQ(summary.documents, 2);
  EXPECT_EQ(summary.tokens, 7);
  EXPECT_EQ(summary.bytes, 3);
}

TEST(Pack, LeavesOutBosAndEosWhenTold) {
  const TemporaryFolder folder;
  const std::string input = folder.file("a.txt", "ab");
  pack_bytes({input}, folder / "none", {.bos = false, .eos = false});
  EXPECT_EQ(tokens_of(folder / "none"), (std::vector<int32_t>{'a', 'b'}));
  pack_bytes({input}, folder / "eos", {.bos = false});
  EXPECT_EQ(tokens_of(folder / "eos"), (std::vector<int32_t>{'a', 'b', 257}));
}

TEST(Pack, KeepsTheOrderOfManyDocuments) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 30000; ++i) text += fmt::format("{{\"text\": \"document {}\"}}\n", i);
  pack_bytes({folder.file("a.jsonl", text)}, folder / "out", {.bos = false, .eos = false});
  std::string expected;
  for (int i = 0; i < 30000; ++i) expected += fmt::format("document {}", i);
  EXPECT_EQ(make_byte_tokenizer()->decode(tokens_of(folder / "out")), expected);
}

TEST(Pack, ProgressEndsAtTheWholeInput) {
  const TemporaryFolder folder;
  const std::string input = folder.file("a.txt", "some text");
  PackProgress last;
  pack({input}, *make_byte_tokenizer(), folder / "out", {},
       [&](const PackProgress& progress) { last = progress; });
  EXPECT_EQ(last.bytes_read, 9);
  EXPECT_EQ(last.total_bytes, 9);
  EXPECT_EQ(last.so_far.documents, 1);
}

TEST(Pack, RefusesInputsWithoutADocument) {
  const TemporaryFolder folder;
  const std::string input = folder.file("a.txt", "");
  EXPECT_TRUE(contains(error_of([&] { pack_bytes({input}, folder / "out"); }), "no documents"));
  EXPECT_FALSE(fs::exists(folder / "out.idx"));
}

TEST(Pack, ABrokenLineLeavesNoStoreBehind) {
  const TemporaryFolder folder;
  const std::string input = folder.file("a.jsonl", "{\"text\": \"fine\"}\nbroken\n");
  EXPECT_TRUE(contains(error_of([&] { pack_bytes({input}, folder / "out"); }), "a.jsonl:2"));
  EXPECT_EQ(list_folder(folder.path()), std::vector<std::string>{"a.jsonl"});
}

TEST(Pack, NamesAFolderThatIsMissing) {
  const TemporaryFolder folder;
  const std::string input = folder.file("a.txt", "x");
  EXPECT_TRUE(contains(error_of([&] { pack_bytes({input}, folder / "no/out"); }), "no/out"));
}

}  // namespace
}  // namespace zaya
