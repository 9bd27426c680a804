// Products of bf16 pairs (AVX-512 BF16), included once per instruction set. Highway 1.0 does not
// have the instruction.

#if defined(ZAYA_BF16_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZAYA_BF16_PAIRS_INL_H_
#undef ZAYA_BF16_PAIRS_INL_H_
#else
#define ZAYA_BF16_PAIRS_INL_H_
#endif

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// A word is two bf16 in the 32 bits of a float, the first in the lower half.

// sum + a.first * b.first + a.second * b.second in each lane, in f32. Only where the code is built
// for AVX-512 and multiplies_bf16() says that the machine can.
HWY_INLINE hn::Vec<FullTag> add_pair_products(hn::Vec<FullTag> a, hn::Vec<FullTag> b,
                                              hn::Vec<FullTag> sum) {
#if HWY_TARGET <= HWY_AVX3
  // Written out because the compiler may not be told that every machine of this target has it.
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
#else
  (void)a, (void)b;
#endif
  return sum;
}

// Words of (first, second), each rounded to nearest even; default NaNs stay NaN.
HWY_INLINE hn::Vec<FullTag> to_words(hn::Vec<FullTag> first, hn::Vec<FullTag> second) {
  const FullTag d;
  const hn::RebindToUnsigned<FullTag> d32;
  const auto upper = hn::And(round_upper_half(d, second), hn::Set(d32, 0xffff0000u));
  return hn::BitCast(d, hn::Or(upper, hn::ShiftRight<16>(round_upper_half(d, first))));
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#endif
