#include "data/batch.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <set>

#include "data/batch_loader.h"
#include "files.h"

namespace zaya {
namespace {

using test::contains;
using test::error_of;
using test::make_store;
using test::TemporaryFolder;

using Ids = std::vector<int32_t>;

std::shared_ptr<const TokenStream> stream_of(const TemporaryFolder& folder,
                                             const std::vector<Ids>& documents) {
  return std::make_shared<TokenStream>(make_store(folder, "s", documents), "s", 1000);
}

TEST(Batch, ARowEndsItsSequencesWhereDocumentsEnd) {
  const TemporaryFolder folder;
  const auto stream = stream_of(folder, {{1, 2, 3}, {4, 5}, {6}, {7, 8, 9}});
  Batch batch;
  fill_batch(Sampler({{stream, 1}}, 1, 0, 8), 0, 1, DocumentMask::documents, batch);
  EXPECT_EQ(batch.ids, (Ids{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(batch.labels, (Ids{2, 3, -100, 5, -100, -100, 8, 9}));
  EXPECT_EQ(batch.cu_seqlens, (Ids{0, 3, 5, 6, 8}));
  EXPECT_EQ(batch.label_count, 5);
  EXPECT_EQ(batch.max_sequence, 3);
  EXPECT_EQ(batch.samples, (std::vector<SampleId>{{0, 0, 0}}));
}

TEST(Batch, WithoutMaskingARowIsOneSequence) {
  const TemporaryFolder folder;
  const auto stream = stream_of(folder, {{1, 2, 3}, {4, 5}, {6}, {7, 8, 9}});
  Batch batch;
  fill_batch(Sampler({{stream, 1}}, 1, 0, 8), 0, 1, DocumentMask::none, batch);
  EXPECT_EQ(batch.labels, (Ids{2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(batch.cu_seqlens, (Ids{0, 8}));
  EXPECT_EQ(batch.label_count, 8);
}

TEST(Batch, ADocumentThatEndsWithTheRowHasNoLastLabel) {
  const TemporaryFolder folder;
  const auto stream = stream_of(folder, {{1, 2}, {3, 4}, {5, 6}});
  Batch batch;
  fill_validation_batch(*stream, 2, 0, 9, DocumentMask::documents, batch);
  EXPECT_EQ(batch.ids, (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(batch.labels, (Ids{2, -100, 4, -100, 6}));
  EXPECT_EQ(batch.cu_seqlens, (Ids{0, 2, 4, 5}));
}

// Documents of random lengths, token i of the stream being i.
std::vector<Ids> counted_documents(int32_t tokens, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Ids> documents(1);
  for (int32_t i = 0; i < tokens; ++i) {
    if (random() % 4 == 0) documents.emplace_back();
    documents.back().push_back(i);
  }
  return documents;
}

TEST(Batch, ValidationScoresEveryTokenButTheFirstExactlyOnce) {
  const TemporaryFolder folder;
  for (const int32_t tokens : {2, 3, 9, 16, 17, 18, 40}) {
    const auto stream = stream_of(folder, counted_documents(tokens, 1));
    Batch batch;
    Ids labels;
    const int64_t windows = validation_windows(*stream, 8);
    for (int64_t first = 0; first < windows; first += 2) {
      fill_validation_batch(*stream, 8, first, 2, DocumentMask::none, batch);
      labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    }
    Ids expected;
    for (int32_t i = 1; i < tokens; ++i) expected.push_back(i);
    EXPECT_EQ(labels, expected);
  }
}

TEST(Batch, ValidationWithMaskingScoresAllButTheFirstTokensOfDocuments) {
  const TemporaryFolder folder;
  const auto documents = counted_documents(100, 2);
  const auto stream = stream_of(folder, documents);
  Batch batch;
  fill_validation_batch(*stream, 8, 0, 1000, DocumentMask::documents, batch);
  Ids scored;
  for (const int32_t label : batch.labels) {
    if (label != -100) scored.push_back(label);
  }
  Ids expected;
  for (const Ids& document : documents) {
    for (size_t i = 1; i < document.size(); ++i) expected.push_back(document[i]);
  }
  EXPECT_EQ(scored, expected);
  EXPECT_EQ(batch.label_count, static_cast<int64_t>(expected.size()));
}

TEST(Batch, LabelsAreTheNextTokensAndSequencesCoverTheBatch) {
  const TemporaryFolder folder;
  const auto stream = stream_of(folder, counted_documents(200, 3));
  const Sampler sampler({{stream, 1}}, 5, 0, 16);
  Batch batch;
  fill_batch(sampler, 0, 6, DocumentMask::documents, batch);
  EXPECT_EQ(batch.tokens(), 6 * 16);
  EXPECT_EQ(batch.cu_seqlens.front(), 0);
  EXPECT_EQ(batch.cu_seqlens.back(), 6 * 16);
  EXPECT_TRUE(std::is_sorted(batch.cu_seqlens.begin(), batch.cu_seqlens.end()));
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    if (batch.labels[i] != -100) {
      EXPECT_EQ(batch.labels[i], batch.ids[i] + 1);
    }
  }
  for (int64_t row = 0; row < 6; ++row) {  // no sequence crosses a row
    EXPECT_TRUE(std::binary_search(batch.cu_seqlens.begin(), batch.cu_seqlens.end(), row * 16));
  }
}

TEST(Batch, ValidationNeedsTwoTokens) {
  const TemporaryFolder folder;
  const auto stream = stream_of(folder, {{1}});
  EXPECT_TRUE(contains(error_of([&] { validation_windows(*stream, 8); }),
                       "1 tokens to validate on, wanted 2"));
}

// ---- Reading ahead ------------------------------------------------------------------------------

TEST(BatchLoader, GivesTheBatchesInOrderAndThenEnds) {
  BatchLoader loader(
      [](int64_t i, Batch& batch) {
        batch.clear();
        batch.ids.assign(3, static_cast<int32_t>(i));
        return i < 20;
      },
      5);
  Batch batch;
  for (int32_t i = 5; i < 20; ++i) {
    ASSERT_TRUE(loader.next(batch));
    EXPECT_EQ(batch.ids, (Ids{i, i, i}));
  }
  EXPECT_FALSE(loader.next(batch));
  EXPECT_FALSE(loader.next(batch));
}

TEST(BatchLoader, StaysWithinItsQueue) {
  std::atomic<int64_t> filled = 0;
  BatchLoader loader(
      [&](int64_t, Batch&) {
        ++filled;
        return true;
      },
      0, 3);
  Batch batch;
  for (int64_t taken = 1; taken <= 50; ++taken) {
    loader.next(batch);
    EXPECT_LE(filled, taken + 3);
  }
}

TEST(BatchLoader, RethrowsAfterTheBatchesBefore) {
  BatchLoader loader(
      [](int64_t i, Batch&) {
        if (i == 2) fail("batch {} is broken", i);
        return true;
      },
      0);
  Batch batch;
  EXPECT_TRUE(loader.next(batch));
  EXPECT_TRUE(loader.next(batch));
  EXPECT_EQ(error_of([&] { loader.next(batch); }), "batch 2 is broken");
  EXPECT_EQ(error_of([&] { loader.next(batch); }), "batch 2 is broken");
}

TEST(BatchLoader, StopsWhileBatchesWait) {
  for (int i = 0; i < 50; ++i) {
    BatchLoader loader([](int64_t, Batch&) { return true; }, 0);
    Batch batch;
    if (i % 2 == 0) loader.next(batch);
  }
}

TEST(BatchLoader, ReusesTheMemoryOfBatches) {
  std::set<const int32_t*> memory;
  {
    BatchLoader loader(
        [&](int64_t, Batch& batch) {
          batch.ids.resize(1000);
          memory.insert(batch.ids.data());
          return true;
        },
        0, 2);
    Batch batch;
    for (int i = 0; i < 200; ++i) loader.next(batch);
  }
  // The consumer's, two that wait, one being filled and one spare.
  EXPECT_LE(memory.size(), 6u);
}

}  // namespace
}  // namespace zaya
