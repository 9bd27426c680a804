#include "data/sampler.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "data/batch.h"
#include "files.h"

namespace zaya {
namespace {

using test::contains;
using test::error_of;
using test::make_store;
using test::TemporaryFolder;

// A stream of `tokens` tokens in one document.
std::shared_ptr<const TokenStream> make_stream(const TemporaryFolder& folder,
                                               const std::string& name, int64_t tokens) {
  std::vector<int32_t> ids(static_cast<size_t>(tokens));
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i % 1000);
  return std::make_shared<TokenStream>(make_store(folder, name, {ids}), name, 1000);
}

TEST(Permute, IsABijectionForEverySize) {
  for (int64_t size = 1; size <= 300; ++size) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t value = permute(99, i, size);
      EXPECT_GE(value, 0);
      EXPECT_LT(value, size);
      seen.insert(value);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
  }
}

TEST(Permute, KeysGiveDifferentOrders) {
  std::set<std::vector<int64_t>> orders;
  for (uint64_t key = 0; key < 50; ++key) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 100; ++i) order.push_back(permute(key, i, 100));
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 50u);
}

TEST(Permute, SpreadsFirstPlacesEvenly) {
  // Over many keys each of 16 values comes first equally often: chi-squared with 15 degrees of
  // freedom stays below 45 with probability 0.9999, and the keys are fixed.
  constexpr int kKeys = 16000;
  std::vector<int> first(16, 0);
  for (uint64_t key = 0; key < kKeys; ++key) ++first[permute(key, 0, 16)];
  double chi_squared = 0;
  for (const int count : first) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_squared, 45);
}

TEST(Permute, WorksBeyondThirtyTwoBits) {
  const int64_t size = (int64_t{1} << 40) + 12345;
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) seen.insert(permute(5, size - 1 - i, size));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_LT(*seen.rbegin(), size);
}

TEST(MixtureShares, AddUpAndRoundByLargestRemainder) {
  EXPECT_EQ(mixture_shares(std::vector<double>{1, 1}, 4096), (std::vector<int64_t>{2048, 2048}));
  EXPECT_EQ(mixture_shares(std::vector<double>{1, 1, 1}, 4096),
            (std::vector<int64_t>{1366, 1365, 1365}));
  EXPECT_EQ(mixture_shares(std::vector<double>{0.7, 0.2, 0.1}, 4096),
            (std::vector<int64_t>{2867, 819, 410}));
  EXPECT_EQ(mixture_shares(std::vector<double>{5, 0}, 4096), (std::vector<int64_t>{4096, 0}));
}

class SamplerTest : public testing::Test {
 protected:
  Sampler make(uint64_t seed = 1, int64_t phase = 0) const {
    return Sampler({{a_, 0.7}, {b_, 0.2}, {c_, 0.1}}, seed, phase, 8);
  }
  TemporaryFolder folder_;
  std::shared_ptr<const TokenStream> a_ = make_stream(folder_, "a", 801);  // 100 windows
  std::shared_ptr<const TokenStream> b_ = make_stream(folder_, "b", 1000);
  std::shared_ptr<const TokenStream> c_ = make_stream(folder_, "c", 9);  // 1 window
};

TEST_F(SamplerTest, MixtureIsExactOverEveryPeriod) {
  const Sampler sampler = make();
  for (int64_t period = 0; period < 3; ++period) {
    std::vector<int64_t> counts(3, 0);
    for (int64_t n = 0; n < kMixturePeriod; ++n) {
      ++counts[sampler.sample_at(period * kMixturePeriod + n).source];
    }
    EXPECT_EQ(counts, (std::vector<int64_t>{2867, 819, 410}));
  }
}

TEST_F(SamplerTest, MixtureIsSmooth) {
  // Every beginning of the period is within one sample of the shares (for three sources).
  const Sampler sampler = make();
  std::vector<int64_t> counts(3, 0);
  for (int64_t n = 0; n < kMixturePeriod; ++n) {
    ++counts[sampler.sample_at(n).source];
    for (int32_t s = 0; s < 3; ++s) {
      const double share = static_cast<double>(sampler.share(s)) / kMixturePeriod;
      EXPECT_LE(std::abs(static_cast<double>(counts[s]) - share * static_cast<double>(n + 1)), 1.0);
    }
  }
}

TEST_F(SamplerTest, AnEpochHoldsEachWindowOnce) {
  const Sampler sampler = make();
  std::map<std::pair<int32_t, int64_t>, std::set<int64_t>> seen;
  std::map<std::pair<int32_t, int64_t>, int64_t> counts;
  for (int64_t n = 0; n < 5000; ++n) {
    const SampleId id = sampler.sample_at(n);
    seen[{id.source, id.epoch}].insert(id.window);
    ++counts[{id.source, id.epoch}];
  }
  for (const auto& [key, windows] : seen) {
    EXPECT_EQ(static_cast<int64_t>(windows.size()), counts[key]);
    EXPECT_LE(counts[key], sampler.windows(key.first));
    // All epochs but a source's last are complete.
    if (seen.contains({key.first, key.second + 1})) {
      EXPECT_EQ(counts[key], sampler.windows(key.first));
    }
  }
}

TEST_F(SamplerTest, EpochsComeInOrderAndInDifferentOrders) {
  const Sampler sampler({{a_, 1}}, 1, 0, 8);
  std::vector<int64_t> first, second;
  for (int64_t n = 0; n < 200; ++n) {
    EXPECT_EQ(sampler.sample_at(n).epoch, n / 100);
    (n < 100 ? first : second).push_back(sampler.sample_at(n).window);
  }
  EXPECT_NE(first, second);
}

TEST_F(SamplerTest, SeedAndPhaseChangeTheOrder) {
  const auto order = [](const Sampler& sampler) {
    std::vector<int64_t> windows;
    for (int64_t n = 0; n < 50; ++n) windows.push_back(sampler.sample_at(n).window);
    return windows;
  };
  EXPECT_EQ(order(make()), order(make()));
  EXPECT_NE(order(make(1, 0)), order(make(2, 0)));
  EXPECT_NE(order(make(1, 0)), order(make(1, 1)));
}

TEST_F(SamplerTest, RowsPerStepDoNotChangeTheSamples) {
  const Sampler sampler = make();
  const auto collect = [&](const std::vector<int64_t>& rows) {
    std::vector<int32_t> ids;
    int64_t first = 0;
    Batch batch;
    for (const int64_t count : rows) {
      fill_batch(sampler, first, count, DocumentMask::documents, batch);
      ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
      first += count;
    }
    return ids;
  };
  EXPECT_EQ(collect({12}), collect({1, 2, 4, 5}));
  EXPECT_EQ(collect({12}), collect({6, 6}));
}

TEST_F(SamplerTest, ASourceOfWeightZeroIsNeverUsed) {
  const TemporaryFolder folder;
  const auto tiny = make_stream(folder, "tiny", 3);  // too short to be used at all
  const Sampler sampler({{a_, 1}, {tiny, 0}}, 1, 0, 8);
  for (int64_t n = 0; n < kMixturePeriod; ++n) EXPECT_EQ(sampler.sample_at(n).source, 0);
}

TEST_F(SamplerTest, RefusesASourceShorterThanAWindow) {
  EXPECT_TRUE(contains(error_of([&] {
                         Sampler({{a_, 1}, {c_, 1}}, 1, 0, 9);
                       }),
                       "source c holds 9 tokens, a window needs 10"));
  EXPECT_TRUE(contains(error_of([&] {
                         Sampler({{make_stream(folder_, "empty", 0), 1}}, 1, 0, 9);
                       }),
                       "source empty holds 0 tokens"));
}

TEST_F(SamplerTest, RefusesWeightsThatMakeNoMixture) {
  const auto error = [&](double a, double b) {
    return error_of([&] { Sampler({{a_, a}, {b_, b}}, 1, 0, 8); });
  };
  EXPECT_TRUE(contains(error(-1, 1), "source a: weight: wanted 0 or more"));
  EXPECT_TRUE(contains(error(std::nan(""), 1), "source a: weight"));
  EXPECT_TRUE(contains(error(0, 0), "positive sum"));
  EXPECT_TRUE(contains(error(1e-6, 1), "less than one sample in 4096"));
}

TEST_F(SamplerTest, DigestDoesNotDependOnHowItIsCut) {
  const Sampler sampler = make();
  const uint64_t whole = extend_digest(0, sampler, 0, 100);
  EXPECT_EQ(extend_digest(extend_digest(0, sampler, 0, 37), sampler, 37, 100), whole);
  Batch batch;
  uint64_t running = 0;
  for (int64_t first = 0; first < 100; first += 20) {
    fill_batch(sampler, first, 20, DocumentMask::documents, batch);
    running = extend_digest(running, sampler.phase(), batch.samples);
  }
  EXPECT_EQ(running, whole);
}

TEST_F(SamplerTest, DigestNoticesEveryChange) {
  std::set<uint64_t> digests;
  digests.insert(extend_digest(0, make(), 0, 100));
  digests.insert(extend_digest(0, make(), 0, 101));
  digests.insert(extend_digest(0, make(), 1, 101));
  digests.insert(extend_digest(0, make(2, 0), 0, 100));
  digests.insert(extend_digest(0, make(1, 1), 0, 100));
  digests.insert(extend_digest(0, Sampler({{a_, 0.7}, {b_, 0.3}}, 1, 0, 8), 0, 100));
  EXPECT_EQ(digests.size(), 6u);
}

TEST_F(SamplerTest, OrderIsTheOneOfEarlierReleases) {
  // Checkpoints of earlier releases hold this digest: changing the order refuses their resume.
  EXPECT_EQ(extend_digest(0, make(1234, 1), 0, 10000), 4460190246252027164u);
}

}  // namespace
}  // namespace zaya
