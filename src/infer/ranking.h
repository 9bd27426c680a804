#pragma once
// The numbers behind a draw from a large vocabulary, without sorting it: maxima of blocks lead to
// the few tokens that matter, and weights are whole numbers, whose sums are exact in any order. The
// same bits on every machine.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zaya {

// The weight of the likeliest token; one that is e^-28 times as likely weighs nothing.
inline constexpr uint64_t kFullWeight = uint64_t{1} << 40;

// e^x for x <= 0, within 2e-7 of its size; below -80 as for -80.
float exp_of_negative(float x);
// round(kFullWeight * share), share in [0, 1].
uint64_t weight_of(float share);

// Copies; false when a value is not finite.
bool copy_finite(std::span<float> to, std::span<const float> from);

// Values, and the maximum of each block of them. The values must stay, and none be NaN.
class BlockMaxima {
 public:
  static constexpr size_t kBlock = 64;

  void build(std::span<const float> values);
  // With maxima that another loop found on its way.
  void build(std::span<const float> values, std::vector<float> maxima);

  float top() const { return top_; }
  // The first position of the largest value.
  int32_t first_top() const;
  // A bound that at least k values reach, as high as the blocks tell.
  float bound_of(int64_t k) const;
  // The positions of the values of at least `bound`, in order.
  void gather(float bound, std::vector<int32_t>& positions) const;

 private:
  std::span<const float> values_;
  std::vector<float> maxima_;
  float top_ = 0;
};

struct Candidate {
  uint64_t weight;
  int32_t id;
  // Heavier first, the smaller id of equals.
  bool operator<(const Candidate& other) const {
    return weight != other.weight ? weight > other.weight : id < other.id;
  }
};
// A candidate, and where it begins when all lie ranked side by side, each as wide as its weight.
struct Ranked {
  Candidate candidate;
  uint64_t begin;
};
// The one that covers position `at`, which is less than their weight together. Changes their order.
Ranked ranked_at(std::span<Candidate> candidates, uint64_t at);

// Every token of a vocabulary as a candidate.
class Shares {
 public:
  explicit Shares(size_t tokens) : shares_(tokens) {}
  // Shares e^((x[i] - top) / temperature) for as many x as tokens; top: the largest x.
  void build(std::span<const float> x, float top, float temperature, uint64_t limit);
  uint64_t all() const { return all_; }      // the sum of their weights
  uint64_t heavy() const { return heavy_; }  // of the weights of at least `limit`
  // As the function of this name, for at < all().
  Ranked ranked_at(uint64_t at);

 private:
  // Weights of one group have their leading four bits in common; a larger one is in no later group.
  static constexpr size_t kGroups = 8 * 41;
  void sum_groups(uint64_t least);

  std::vector<float> shares_;
  BlockMaxima maxima_;
  uint64_t all_ = 0, heavy_ = 0;
  uint64_t grouped_ = 0;  // the groups' sums together
  uint64_t sums_[kGroups] = {};
  std::vector<int32_t> positions_;
  std::vector<Candidate> candidates_;
};

}  // namespace zaya
