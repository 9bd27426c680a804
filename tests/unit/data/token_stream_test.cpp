#include "data/token_stream.h"

#include "files.h"

namespace zaya {
namespace {

using test::contains;
using test::error_of;
using test::make_store;
using test::TemporaryFolder;

// Document d holds d % 4 tokens, all equal to d: some documents are empty.
std::vector<std::vector<int32_t>> numbered_documents(int32_t count) {
  std::vector<std::vector<int32_t>> documents;
  for (int32_t d = 0; d < count; ++d) documents.emplace_back(static_cast<size_t>(d % 4), d);
  return documents;
}

std::vector<int32_t> read_all(const TokenStream& stream) {
  std::vector<int32_t> ids(static_cast<size_t>(stream.token_count()));
  std::vector<int64_t> starts;
  stream.copy(0, ids, starts);
  return ids;
}

TEST(TokenStream, HoldsOutExactlyEveryNthDocument) {
  const TemporaryFolder folder;
  for (const int32_t count : {0, 1, 2, 3, 9, 10, 11, 40}) {
    const auto documents = numbered_documents(count);
    const auto store = make_store(folder, "s", documents);
    for (const int64_t every : {2, 3, 5, 20}) {
      std::vector<int32_t> kept, held;
      for (int32_t d = 0; d < count; ++d) {
        auto& part = (d + 1) % every == 0 ? held : kept;
        part.insert(part.end(), documents[d].begin(), documents[d].end());
      }
      EXPECT_EQ(read_all({store, "s", 1000, StreamPart::kept, every}), kept);
      EXPECT_EQ(read_all({store, "s", 1000, StreamPart::held_out, every}), held);
    }
  }
}

TEST(TokenStream, KnowsWhereDocumentsBegin) {
  const TemporaryFolder folder;
  const auto store = make_store(folder, "s", numbered_documents(60));
  for (const StreamPart part : {StreamPart::all, StreamPart::kept, StreamPart::held_out}) {
    const TokenStream stream(store, "s", 1000, part, part == StreamPart::all ? 0 : 7);
    const std::vector<int32_t> ids = read_all(stream);
    for (int64_t k = 0; k < stream.document_count(); ++k) {
      for (int64_t i = stream.document_begin(k); i < stream.document_begin(k + 1); ++i) {
        EXPECT_EQ(ids[i], stream.store_document(k));
        EXPECT_EQ(stream.document_at(i), k);
      }
    }
    EXPECT_EQ(stream.document_begin(stream.document_count()), stream.token_count());
  }
}

TEST(TokenStream, EveryWindowIsAPieceOfTheWhole) {
  const TemporaryFolder folder;
  const TokenStream stream(make_store(folder, "s", numbered_documents(30)), "s", 1000,
                           StreamPart::kept, 4);
  const std::vector<int32_t> all = read_all(stream);
  std::vector<int64_t> starts;
  for (int64_t begin = 0; begin <= stream.token_count(); ++begin) {
    for (int64_t size = 0; begin + size <= stream.token_count(); ++size) {
      std::vector<int32_t> window(static_cast<size_t>(size));
      stream.copy(begin, window, starts);
      EXPECT_TRUE(std::equal(window.begin(), window.end(), all.begin() + begin));
      std::vector<int64_t>
          expected;  // a document begins where the token differs from the one before
      for (int64_t i = begin; i < begin + size; ++i) {
        if (i == 0 || all[i] != all[i - 1]) expected.push_back(i - begin);
      }
      EXPECT_EQ(starts, expected);
    }
  }
}

TEST(TokenStream, NamesTheFileAndPositionOfAnIdOutsideTheVocabulary) {
  const TemporaryFolder folder;
  const auto store = make_store(folder, "s", {{1, 2}, {3, 50, 4}});
  const TokenStream stream(store, "s", 50);
  EXPECT_TRUE(contains(error_of([&] { read_all(stream); }),
                       "s.bin: token 3: wanted an id of 0 to 49, got 50"));
}

TEST(TokenStream, RefusesToHoldOutEverything) {
  const TemporaryFolder folder;
  const auto store = make_store(folder, "s", {{1, 2}});
  EXPECT_TRUE(contains(error_of([&] { TokenStream(store, "s", 50, StreamPart::kept, 1); }),
                       "holdout_every: wanted 2 or more, got 1"));
}

}  // namespace
}  // namespace zaya
