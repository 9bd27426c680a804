#include "infer/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace zaya {
namespace {

std::vector<float> random_values(size_t n, double scale, uint64_t seed = 1) {
  const Random random(seed, "ranking");
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(scale * random.normal(i));
  return values;
}

TEST(Ranking, ExpIsCloseAndExactAtZero) {
  EXPECT_EQ(exp_of_negative(0), 1.0f);
  EXPECT_EQ(weight_of(exp_of_negative(-INFINITY)), 0u);
  for (float x = -79; x < 0; x += 0.0137f)
    // Half a unit in the last place of the polynomial, and of the result: 2e-7 in all.
    EXPECT_NEAR(exp_of_negative(x) / std::exp(static_cast<double>(x)), 1, 2e-7) << x;
}

TEST(Ranking, WeightsAreRoundedShares) {
  EXPECT_EQ(weight_of(1), kFullWeight);
  EXPECT_EQ(weight_of(0.5f), kFullWeight / 2);
  EXPECT_EQ(weight_of(0x1.8p-40f), 2u);  // 1.5: to even
  EXPECT_EQ(weight_of(0x1p-42f), 0u);
}

TEST(Ranking, CopyTellsWhetherAllIsFinite) {
  for (size_t n = 1; n < 70; ++n) {
    std::vector<float> from = random_values(n, 1), to(n);
    EXPECT_TRUE(copy_finite(to, from));
    EXPECT_EQ(to, from);
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
      std::vector<float> damaged = from;
      damaged[n / 2] = bad;
      EXPECT_FALSE(copy_finite(to, damaged)) << n;
    }
  }
}

TEST(Ranking, MaximaFindTheFirstLargestAtEveryLength) {
  for (size_t n : {1, 2, 63, 64, 65, 128, 200, 1000}) {
    std::vector<float> values = random_values(n, 2);
    for (size_t at : {size_t{0}, n / 2, n - 1}) {
      std::vector<float> with = values;
      with[at] = with[n - 1] = 100;
      BlockMaxima maxima;
      maxima.build(with);
      EXPECT_EQ(maxima.top(), 100);
      EXPECT_EQ(maxima.first_top(), static_cast<int32_t>(at));
    }
  }
}

TEST(Ranking, GatherFindsAllThatReachTheBound) {
  const std::vector<float> values = random_values(1000, 1);
  BlockMaxima maxima;
  maxima.build(values);
  for (const float bound : {-9.0f, 0.0f, values[7], 2.5f, 9.0f}) {
    std::vector<int32_t> wanted, found;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] >= bound) wanted.push_back(static_cast<int32_t>(i));
    maxima.gather(bound, found);
    EXPECT_EQ(found, wanted) << bound;
  }
}

TEST(Ranking, TheBoundOfKIsReachedByKValues) {
  const std::vector<float> values = random_values(1000, 1);
  BlockMaxima maxima;
  maxima.build(values);
  for (int64_t k : {1, 5, 16, 17, 1000}) {
    const float bound = maxima.bound_of(k);
    EXPECT_GE(std::count_if(values.begin(), values.end(), [&](float x) { return x >= bound; }), k);
  }
}

// Shares::ranked_at and ranked_at against sorting, at the edges of candidates and between.
TEST(Ranking, APositionIsFoundAsBySorting) {
  for (const double scale : {0.0, 0.01, 1.0, 5.0, 40.0}) {
    const std::vector<float> x = random_values(3000, scale);
    const float top = *std::max_element(x.begin(), x.end());
    Shares shares(x.size());
    shares.build(x, top, 1, 0);
    std::vector<Candidate> sorted;
    for (size_t i = 0; i < x.size(); ++i)
      sorted.push_back({weight_of(exp_of_negative(x[i] - top)), static_cast<int32_t>(i)});
    std::vector<Candidate> shuffled = sorted;
    std::sort(sorted.begin(), sorted.end());
    uint64_t begin = 0;
    for (size_t i = 0; i < sorted.size() && sorted[i].weight > 0; ++i) {
      const uint64_t last = begin + sorted[i].weight - 1;
      if (i < 40 || i % 97 == 0) {
        for (const uint64_t at : {begin, last}) {
          const Ranked one = shares.ranked_at(at), other = ranked_at(shuffled, at);
          EXPECT_EQ(one.candidate.id, sorted[i].id) << scale << " " << i;
          EXPECT_EQ(one.begin, begin);
          EXPECT_EQ(other.candidate.id, sorted[i].id) << scale << " " << i;
          EXPECT_EQ(other.begin, begin);
        }
      }
      begin = last + 1;
    }
    EXPECT_EQ(shares.all(), begin);
    EXPECT_EQ(shares.heavy(), begin);
  }
}

TEST(Ranking, HeavyCountsFromTheLimitOn) {
  const std::vector<float> x = random_values(1000, 2);
  const float top = *std::max_element(x.begin(), x.end());
  std::vector<uint64_t> weights;
  for (const float value : x) weights.push_back(weight_of(exp_of_negative(value - top)));
  for (const uint64_t limit : {uint64_t{1}, weights[3], weights[3] + 1, kFullWeight}) {
    Shares shares(x.size());
    shares.build(x, top, 1, limit);
    uint64_t wanted = 0;
    for (const uint64_t weight : weights) wanted += weight >= limit ? weight : 0;
    EXPECT_EQ(shares.heavy(), wanted);
  }
}

}  // namespace
}  // namespace zaya
