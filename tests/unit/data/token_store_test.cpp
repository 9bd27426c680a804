#include "data/token_store.h"

#include <cstring>
#include <limits>

#include "files.h"

namespace zaya {
namespace {

using test::contains;
using test::error_of;
using test::make_store;
using test::TemporaryFolder;

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) {
    bytes.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
  return bytes;
}

// An index in pieces, so that tests can bend one of them.
struct Index {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t dtype = 8;
  std::vector<int32_t> lengths = {3, 1, 2};
  std::vector<int64_t> pointers = {0, 6, 8};
  std::vector<int64_t> documents = {0, 1, 3};
  int64_t sequence_count = -1;  // of the vectors unless set
  int64_t document_count = -1;

  std::string bytes() const {
    std::string out = magic + little_endian(version) + little_endian(dtype);
    const auto count = [](int64_t set, size_t size) {
      return set == -1 ? static_cast<int64_t>(size) : set;
    };
    out += little_endian(count(sequence_count, lengths.size()));
    out += little_endian(count(document_count, documents.size()));
    for (const int32_t length : lengths) out += little_endian(length);
    for (const int64_t pointer : pointers) out += little_endian(pointer);
    for (const int64_t document : documents) out += little_endian(document);
    return out;
  }
};

std::string bin_u16(const std::vector<uint16_t>& ids) {
  std::string bytes;
  for (const uint16_t id : ids) bytes += little_endian(id);
  return bytes;
}

std::vector<int32_t> read_tokens(const TokenStore& store) {
  std::vector<int32_t> ids(static_cast<size_t>(store.token_count()));
  store.copy(0, ids);
  return ids;
}

TEST(TokenStore, WriterMakesTheFormatByteForByte) {
  const TemporaryFolder folder;
  make_store(folder, "a", {{5, 6, 65535}, {7}, {}}, 65536);
  Index index;
  index.lengths = {3, 1, 0};
  index.pointers = {0, 6, 8};
  index.documents = {0, 1, 2, 3};
  EXPECT_EQ(read_file(folder / "a.bin"), std::string("\x05\0\x06\0\xff\xff\x07\0", 8));
  EXPECT_EQ(read_file(folder / "a.idx"), index.bytes());
}

TEST(TokenStore, WriterTakesInt32ForLargeVocabularies) {
  const TemporaryFolder folder;
  make_store(folder, "a", {{65536, 1}}, 65537);
  EXPECT_EQ(read_file(folder / "a.bin"), std::string("\0\0\x01\0\x01\0\0\0", 8));
  EXPECT_EQ(read_file(folder / "a.idx")[17], 4);
}

TEST(TokenStore, ReadsDocumentsOfSeveralSequences) {
  const TemporaryFolder folder;
  folder.file("m.idx", Index().bytes());
  folder.file("m.bin", bin_u16({1, 2, 3, 4, 5, 6}));
  const TokenStore store(folder / "m");
  EXPECT_EQ(store.token_count(), 6);
  EXPECT_EQ(store.sequence_count(), 3);
  EXPECT_EQ(store.document_count(), 2);
  EXPECT_EQ(store.document_begin(0), 0);
  EXPECT_EQ(store.document_begin(1), 3);
  EXPECT_EQ(store.document_begin(2), 6);
  EXPECT_EQ(read_tokens(store), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(TokenStore, OpensByPrefixOrByEitherFile) {
  const TemporaryFolder folder;
  make_store(folder, "a.b", {{1, 2}});
  for (const char* name : {"a.b", "a.b.bin", "a.b.idx"}) {
    EXPECT_EQ(TokenStore(folder / name).token_count(), 2);
  }
}

TEST(TokenStore, ReadsEveryIntegerWidth) {
  const TemporaryFolder folder;
  const auto read = [&](uint8_t code, const std::string& bin, int64_t width) {
    Index index;
    index.dtype = code;
    index.lengths = {2};
    index.pointers = {0};
    index.documents = {0, 1};
    folder.file("w.idx", index.bytes());
    folder.file("w.bin", bin);
    EXPECT_EQ(static_cast<int64_t>(bin.size()), 2 * width);
    return read_tokens(TokenStore(folder / "w"));
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(read(1, "\x01\xff", 1), (Ids{1, 255}));
  EXPECT_EQ(read(2, "\x01\xff", 1), (Ids{1, -1}));
  EXPECT_EQ(read(3, little_endian(int16_t{300}) + little_endian(int16_t{-2}), 2), (Ids{300, -2}));
  EXPECT_EQ(read(8, little_endian(uint16_t{300}) + little_endian(uint16_t{65535}), 2),
            (Ids{300, 65535}));
  EXPECT_EQ(read(4, little_endian(70000) + little_endian(-3), 4), (Ids{70000, -3}));
  // What int32 cannot hold must not wrap to an innocent id.
  EXPECT_EQ(read(5, little_endian(int64_t{70000}) + little_endian((int64_t{1} << 32) + 5), 8),
            (Ids{70000, -1}));
}

TEST(TokenStore, AnUnfinishedWriterLeavesNothing) {
  const TemporaryFolder folder;
  {
    TokenStoreWriter writer(folder / "a", 100);
    writer.add_document(std::vector<int32_t>{1, 2});
  }
  EXPECT_TRUE(list_folder(folder.path()).empty());
}

TEST(TokenStore, AnUnfinishedWriterLeavesTheOldStoreAlone) {
  const TemporaryFolder folder;
  make_store(folder, "a", {{1, 2}});
  {
    TokenStoreWriter writer(folder / "a", 100);
    writer.add_document(std::vector<int32_t>{9, 9, 9});
  }
  EXPECT_EQ(read_tokens(TokenStore(folder / "a")), (std::vector<int32_t>{1, 2}));
}

TEST(TokenStore, AWriterReplacesAnOldStore) {
  const TemporaryFolder folder;
  make_store(folder, "a", {{1, 2}});
  EXPECT_EQ(read_tokens(*make_store(folder, "a", {{3}, {4}})), (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(list_folder(folder.path()), (std::vector<std::string>{"a.bin", "a.idx"}));
}

TEST(TokenStore, AnOldIndexIsGoneBeforeNewTokensAppear) {
  // A crash between the two renames must not pair them. Here the first rename fails instead.
  const TemporaryFolder folder;
  make_store(folder, "a", {{1, 2}});
  TokenStoreWriter writer(folder / "a", 100);
  fs::remove(folder / "a.bin");
  make_folder(folder / "a.bin/in the way");
  EXPECT_TRUE(contains(error_of([&] { writer.finish(); }), "a.bin"));
  EXPECT_FALSE(fs::exists(folder / "a.idx"));
}

TEST(TokenStore, AWriterRefusesAtOnceWhereItsFilesCannotGo) {
  const TemporaryFolder folder;
  make_folder(folder / "a.idx");
  const auto error = [](const std::string& prefix) {
    return error_of([&] { TokenStoreWriter writer(prefix, 100); });
  };
  EXPECT_TRUE(contains(error(folder / "a"), "a.idx: wanted to write a file, got a folder"));
  EXPECT_TRUE(contains(error(folder.path() + "/"), "wanted a folder and a name"));
  EXPECT_TRUE(contains(error(""), "wanted a folder and a name"));
}

TEST(TokenStore, TheFingerprintFollowsTokensAndDocuments) {
  const TemporaryFolder folder;
  const auto of = [&](const std::vector<std::vector<int32_t>>& documents) {
    return make_store(folder, "a", documents)->fingerprint();
  };
  EXPECT_EQ(of({{1, 2}, {3}}), of({{1, 2}, {3}}));
  EXPECT_NE(of({{1, 2}, {3}}), of({{1}, {2, 3}}));
  EXPECT_NE(of({{1, 2}, {3}}), of({{1, 2}, {4}}));
  EXPECT_NE(of({}), of({{1}}));
}

TEST(TokenStore, AnEmptyStoreOpens) {
  const TemporaryFolder folder;
  EXPECT_EQ(make_store(folder, "a", {})->token_count(), 0);
}

// ---- Hostile files ------------------------------------------------------------------------------

class HostileStore : public testing::Test {
 protected:
  std::string error_of_index(const std::string& idx) {
    folder_.file("h.idx", idx);
    return error_of([&] { TokenStore store(folder_ / "h"); });
  }
  std::string error_of_index(const Index& index) { return error_of_index(index.bytes()); }
  void SetUp() override { folder_.file("h.bin", bin_u16({1, 2, 3, 4, 5, 6})); }
  TemporaryFolder folder_;
};

TEST_F(HostileStore, EveryTruncationOfTheIndex) {
  const std::string whole = Index().bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(contains(error_of_index(whole.substr(0, size)), "h.idx")) << size;
  }
}

TEST_F(HostileStore, BytesAfterTheEnd) {
  EXPECT_TRUE(contains(error_of_index(Index().bytes() + "x"), "wanted the size"));
}

TEST_F(HostileStore, AnotherMagic) {
  Index index;
  index.magic[0] = 'X';
  EXPECT_TRUE(contains(error_of_index(index), "MMIDIDX"));
}

TEST_F(HostileStore, AnotherVersion) {
  Index index;
  index.version = 2;
  EXPECT_TRUE(contains(error_of_index(index), "wanted version 1, got 2"));
}

TEST_F(HostileStore, DtypesThatAreFloatsOrUnknown) {
  Index index;
  for (const uint8_t code : {6, 7}) {
    index.dtype = code;
    EXPECT_TRUE(contains(error_of_index(index), "floating point"));
  }
  for (const uint8_t code : {0, 9, 255}) {
    index.dtype = code;
    EXPECT_TRUE(contains(error_of_index(index), "dtype code"));
  }
}

TEST_F(HostileStore, CountsThatAreNotTheSizeOfTheFile) {
  for (const int64_t count : {int64_t{2}, int64_t{4}, int64_t{1} << 60, int64_t{-2},
                              std::numeric_limits<int64_t>::min()}) {
    Index index;
    index.sequence_count = count;
    EXPECT_TRUE(contains(error_of_index(index), "wanted the size")) << count;
    index = {};
    index.document_count = count;
    EXPECT_TRUE(contains(error_of_index(index), "wanted the size")) << count;
  }
}

TEST_F(HostileStore, CountsWhoseSizeWraps) {
  Index index;
  // 12 * S + 8 * D wraps to what the file has.
  index.sequence_count = (int64_t{1} << 62) + 3;
  EXPECT_TRUE(contains(error_of_index(index), "wanted the size"));
}

TEST_F(HostileStore, NoDocumentIndexAtAll) {
  Index index;
  index.documents = {};
  EXPECT_TRUE(contains(error_of_index(index), "at least one document index"));
}

TEST_F(HostileStore, ANegativeLength) {
  Index index;
  index.lengths[1] = -1;
  EXPECT_TRUE(contains(error_of_index(index), "sequence 1: wanted a length"));
}

TEST_F(HostileStore, ALengthBeyondTheTokens) {
  Index index;
  index.lengths[2] = std::numeric_limits<int32_t>::max();
  EXPECT_TRUE(contains(error_of_index(index), "has 12 bytes"));
}

TEST_F(HostileStore, PointersThatAreNegativeOutsideOrNotInOrder) {
  for (const int64_t pointer : {int64_t{-2}, int64_t{7}, int64_t{1} << 40, int64_t{0}}) {
    Index index;
    index.pointers[1] = pointer;
    EXPECT_TRUE(contains(error_of_index(index), "sequence 1: wanted byte offset 6")) << pointer;
  }
}

TEST_F(HostileStore, DocumentIndicesOutOfRange) {
  for (const int64_t sequence : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
    Index index;
    index.documents[1] = sequence;
    EXPECT_TRUE(contains(error_of_index(index), "document index 1")) << sequence;
  }
}

TEST_F(HostileStore, DocumentIndicesThatGoBackStartLateOrEndEarly) {
  Index index;
  index.documents = {0, 2, 1, 3};
  EXPECT_TRUE(contains(error_of_index(index), "document index 2"));
  index.documents = {1, 2, 3};
  EXPECT_TRUE(contains(error_of_index(index), "document index 0"));
  index.documents = {0, 1, 2};
  EXPECT_TRUE(contains(error_of_index(index), "last document index: wanted 3, got 2"));
}

TEST_F(HostileStore, TokensCutShort) {
  folder_.file("h.bin", bin_u16({1, 2, 3, 4, 5}));
  EXPECT_TRUE(contains(error_of_index(Index()), "h.bin has 10 bytes"));
}

TEST_F(HostileStore, TokensAfterTheEnd) {
  folder_.file("h.bin", bin_u16({1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(contains(error_of_index(Index()), "wanted 12 bytes"));
}

TEST_F(HostileStore, HalfATokenAtTheEnd) {
  folder_.file("h.bin", bin_u16({1, 2, 3, 4, 5, 6}) + "x");
  EXPECT_TRUE(contains(error_of_index(Index()), "got 13"));
}

TEST_F(HostileStore, AMissingFile) {
  EXPECT_TRUE(contains(error_of([&] { TokenStore store(folder_ / "h"); }), "h.idx"));
  folder_.file("only.idx", Index().bytes());
  EXPECT_TRUE(contains(error_of([&] { TokenStore store(folder_ / "only"); }), "only.bin"));
}

}  // namespace
}  // namespace zaya
