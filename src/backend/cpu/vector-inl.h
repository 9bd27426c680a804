// Vector helpers for *_cpu.cpp files, included once per instruction set (Highway's foreach_target).
// A row is walked in full vectors and its last few elements one at a time, by the same code:
// callbacks take the tag `d`, and every load or store goes through `load` and `store`.

#if defined(ZAYA_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZAYA_VECTOR_INL_H_
#undef ZAYA_VECTOR_INL_H_
#else
#define ZAYA_VECTOR_INL_H_
#endif

#include <hwy/highway.h>

#include "core/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FullTag = hn::ScalableTag<float>;
using OneTag = hn::CappedTag<float, 1>;

// Lanes of float at p, whatever the format there.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const bf16* p) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

// The bits of v, their upper half rounded to nearest even as a bf16. The default NaN stays NaN;
// others may come out as anything.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> round_upper_half(D /*d*/, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  return hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fff)));
}

template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, float* p) {
  hn::StoreU(v, d, p);
}
// Rounds to nearest even, as bf16's constructor does (NaN stays NaN).
template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, bf16* p) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto rounded = hn::ShiftRight<16>(round_upper_half(d, v));
  const auto quiet = hn::Or(hn::ShiftRight<16>(hn::BitCast(d32, v)), hn::Set(d32, 0x40));
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(v));
  // Values fit 16 bits, but DemoteTo takes signed lanes and saturates: keep the sign bit out of it.
  const auto bits = hn::IfThenElse(is_nan, quiet, rounded);
  const hn::RebindToSigned<decltype(d32)> di32;
  const hn::Rebind<int16_t, D> di16;
  const auto extended = hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(di32, bits)));
  hn::StoreU(hn::BitCast(d16, hn::DemoteTo(di16, extended)), d16, reinterpret_cast<uint16_t*>(p));
}

// f(d, i) for every vector of [0, n): full vectors first, the rest one element at a time.
template <class F>
HWY_INLINE void for_each_vector(int64_t n, F&& f) {
  const FullTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(OneTag(), i);
}

// Sum over [0, n) of f(d, i). The order depends on n alone.
template <class F>
HWY_INLINE float reduce_sum(int64_t n, F&& f) {
  const FullTag d;
  const OneTag one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d);
  auto odd = hn::Zero(d);
  auto rest = hn::Zero(one);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = hn::Add(even, f(d, i));
    odd = hn::Add(odd, f(d, i + lanes));
  }
  for (; i + lanes <= n; i += lanes) even = hn::Add(even, f(d, i));
  for (; i < n; ++i) rest = hn::Add(rest, f(one, i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd))) + hn::GetLane(rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#endif
