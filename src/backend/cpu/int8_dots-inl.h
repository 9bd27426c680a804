// Sums of four products of bytes in each lane of 32 bits, included once per instruction set
// that has vectors.
// Highway 1.0 does not have the instructions.

#if defined(ZAYA_INT8_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZAYA_INT8_DOTS_INL_H_
#undef ZAYA_INT8_DOTS_INL_H_
#else
#define ZAYA_INT8_DOTS_INL_H_
#endif

#include <immintrin.h>

#include <type_traits>

#include "backend/cpu/vector-inl.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FullTag>;
using Ints = hn::Vec<IntTag>;                      // lanes of 32 bits
using ByteTag = hn::Repartition<uint8_t, IntTag>;  // a signed byte is held in its bits
using Bytes = hn::Vec<ByteTag>;

// How bytes are multiplied: std::true_type where multiplies_bytes() says that the machine has the
// instruction, std::false_type elsewhere. Sums are exact, so both give the same.
template <class HasDots>
inline constexpr bool kHasDots = HasDots::value&& HWY_TARGET <= HWY_AVX3;

// sum + the four products of a (0 to 255) and b (-127 to 127) in each lane.
template <class HasDots>
HWY_INLINE Ints add_dots(Ints sum, Bytes a, Bytes b);

// The same for a from 0 to 15.
template <class HasDots>
HWY_INLINE Ints add_small_dots(Ints sum, Bytes a, Bytes b) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kHasDots<HasDots>) {
    // Written out because the compiler may not be told that every machine of this target has it.
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
  const __m512i pairs = _mm512_maddubs_epi16(a.raw, b.raw);
  return hn::Add(sum, Ints{_mm512_madd_epi16(pairs, _mm512_set1_epi16(1))});
#else
  const __m256i pairs = _mm256_maddubs_epi16(a.raw, b.raw);
  return hn::Add(sum, Ints{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
#endif
}

template <class HasDots>
HWY_INLINE Ints add_dots(Ints sum, Bytes a, Bytes b) {
  if constexpr (kHasDots<HasDots>) return add_small_dots<HasDots>(sum, a, b);
  // Pairs of larger products would not fit the 16 bits in which they are added: by halves of a.
  const hn::Repartition<uint16_t, ByteTag> d16;
  const auto mask = hn::Set(ByteTag(), 15);
  const auto high = hn::And(hn::BitCast(ByteTag(), hn::ShiftRight<4>(hn::BitCast(d16, a))), mask);
  const Ints upper = add_small_dots<HasDots>(hn::Zero(IntTag()), high, b);
  return hn::Add(add_small_dots<HasDots>(sum, hn::And(a, mask), b), hn::ShiftLeft<4>(upper));
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();
#endif

#endif
