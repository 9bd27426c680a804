#include "core/random.h"

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/hash.h"

namespace zaya {

Random::Random(uint64_t seed, uint64_t stream)
    : key_(mix64(mix64(seed + 0x9e3779b97f4a7c15u) + stream)), step_(mix64(key_ ^ stream) | 1) {}

Random::Random(uint64_t seed, std::string_view stream) : Random(seed, xxh3(stream)) {}

double Random::uniform(uint64_t position) const {
  return static_cast<double>(bits(position) >> 11) * 0x1p-53;
}

double Random::normal(uint64_t position) const {
  // Two numbers in, one out: a position then needs no neighbour. 1 - uniform is in (0, 1].
  const double radius = std::sqrt(-2 * std::log(1 - uniform(2 * position)));
  return radius * std::cos(2 * std::numbers::pi * uniform(2 * position + 1));
}

uint64_t Random::below(uint64_t position, uint64_t bound) const {
  ZAYA_REQUIRE(bound > 0);
  // The high half of a 128-bit product; its bias of bound / 2^64 cannot be seen.
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits(position)) * bound) >> 64);
}

}  // namespace zaya
