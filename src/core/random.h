#pragma once
// Random numbers as a pure function of (seed, stream, position), so that no thread count, process
// count or restart changes them. The generator is SplitMix64 in counter form (Steele, Lea, Flood,
// "Fast splittable pseudorandom number generators", 2014).

#include <cstdint>
#include <string_view>

namespace zaya {

// A bijection of 64 bits that scatters its input: SplitMix64's finaliser.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  // Streams of one seed are independent: one per tensor, per phase, per request.
  explicit Random(uint64_t seed, uint64_t stream = 0);
  // A stream named by text, such as a parameter's name.
  Random(uint64_t seed, std::string_view stream);

  // Number `position` of the stream.
  uint64_t bits(uint64_t position) const { return mix64(key_ + (position + 1) * step_); }
  double uniform(uint64_t position) const;                  // [0, 1), 53 bits
  double normal(uint64_t position) const;                   // mean 0, variance 1 (Box and Muller)
  uint64_t below(uint64_t position, uint64_t bound) const;  // [0, bound), bound > 0

 private:
  uint64_t key_;
  uint64_t step_;  // odd
};

}  // namespace zaya
