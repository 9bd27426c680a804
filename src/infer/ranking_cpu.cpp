// The loops over a whole vocabulary. Written without fused multiply-adds, so that every instruction
// set gives the same bits.

#include <bit>

#include "core/ceil_div.h"
#include "core/error.h"
#include "infer/ranking.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "infer/ranking_cpu.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first
#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// Added to a number below a quarter of its size, and taken away again, they round it to a whole
// one; its bits are then the low bits of the sum.
constexpr float kFloatRounder = 12582912.0f;           // 1.5 * 2^23
constexpr double kDoubleRounder = 6755399441055744.0;  // 1.5 * 2^52

// Cephes' expf: x = n ln 2 + r, and a polynomial for e^r.
template <class D>
HWY_INLINE hn::Vec<D> exp_share(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> bits;
  const auto c = [&](float value) { return hn::Set(d, value); };
  x = hn::Max(x, c(-80.0f));
  const auto shifted = hn::Add(hn::Mul(x, c(1.44269504f)), c(kFloatRounder));
  const auto n = hn::Sub(shifted, c(kFloatRounder));
  const auto r = hn::Sub(hn::Sub(x, hn::Mul(n, c(0.693359375f))), hn::Mul(n, c(-2.12194440e-4f)));
  auto p = c(1.9875691500e-4f);
  for (float next :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
    p = hn::Add(hn::Mul(p, r), c(next));
  const auto e = hn::Add(hn::Add(hn::Mul(hn::Mul(p, r), r), r), c(1.0f));
  const auto exponent = hn::Sub(hn::BitCast(bits, shifted), hn::BitCast(bits, c(kFloatRounder)));
  return hn::Mul(e, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(bits, 127)))));
}

float exp_one(float x) { return hn::GetLane(exp_share(OneTag(), hn::Set(OneTag(), x))); }

bool copy_if_finite(float* to, const float* from, size_t n) {
  // x - x is 0, or NaN where x is not finite.
  const float sum = reduce_sum(static_cast<int64_t>(n), [&](auto d, int64_t i) {
    const auto x = load(d, from + i);
    store(x, d, to + i);
    return hn::Sub(x, x);
  });
  return sum == 0;
}

void block_maxima(float* maxima, const float* x, size_t n) {
  constexpr size_t kBlock = BlockMaxima::kBlock;
  const FullTag d;
  const size_t lanes = hn::Lanes(d);
  for (size_t block = 0; block * kBlock < n; ++block) {
    const float* const from = x + block * kBlock;
    const size_t size = n - block * kBlock < kBlock ? n - block * kBlock : kBlock;
    auto found = hn::Set(d, from[0]);
    size_t i = 0;
    for (; i + lanes <= size; i += lanes) found = hn::Max(found, hn::LoadU(d, from + i));
    float max = hn::GetLane(hn::MaxOfLanes(d, found));
    for (; i < size; ++i) max = from[i] > max ? from[i] : max;
    maxima[block] = max;
  }
}

void exp_shares(float* shares, const float* x, float top, float temperature, size_t n) {
  for_each_vector(static_cast<int64_t>(n), [&](auto d, int64_t i) {
    const auto below = hn::Sub(load(d, x + i), hn::Set(d, top));
    store(exp_share(d, hn::Div(below, hn::Set(d, temperature))), d, shares + i);
  });
}

// The weights of the shares from `limit` on.
template <class D>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> weights(D d, const float* shares, double limit) {
  const hn::Rebind<float, D> half;
  const hn::RebindToUnsigned<D> bits;
  const auto rounder = hn::Set(d, kDoubleRounder);
  const auto share = hn::PromoteTo(d, hn::LoadU(half, shares));
  const auto shifted =
      hn::Add(hn::Mul(share, hn::Set(d, static_cast<double>(kFullWeight))), rounder);
  const auto heavy = hn::Ge(hn::Sub(shifted, rounder), hn::Set(d, limit));
  const auto kept = hn::IfThenElse(heavy, shifted, rounder);
  return hn::Sub(hn::BitCast(bits, kept), hn::BitCast(bits, rounder));
}

uint64_t sum_weights(const float* shares, size_t n, double limit) {
  const hn::ScalableTag<double> d;
  const hn::CappedTag<double, 1> one;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const size_t lanes = hn::Lanes(d);
  auto sums = hn::Zero(bits);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) sums = hn::Add(sums, weights(d, shares + i, limit));
  uint64_t sum = hn::GetLane(hn::SumOfLanes(bits, sums));
  for (; i < n; ++i) sum += hn::GetLane(weights(one, shares + i, limit));
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(exp_one);
HWY_EXPORT(copy_if_finite);
HWY_EXPORT(block_maxima);
HWY_EXPORT(exp_shares);
HWY_EXPORT(sum_weights);

constexpr size_t kChunk = 4096;  // goes through the loops one after another while it is in cache
}  // namespace

float exp_of_negative(float x) { return HWY_DYNAMIC_DISPATCH(exp_one)(x); }

bool copy_finite(std::span<float> to, std::span<const float> from) {
  ZAYA_REQUIRE(to.size() == from.size());
  return HWY_DYNAMIC_DISPATCH(copy_if_finite)(to.data(), from.data(), to.size());
}

void BlockMaxima::build(std::span<const float> values) {
  std::vector<float> maxima(ceil_div(values.size(), kBlock));
  HWY_DYNAMIC_DISPATCH(block_maxima)(maxima.data(), values.data(), values.size());
  build(values, std::move(maxima));
}

void Shares::build(std::span<const float> x, float top, float temperature, uint64_t limit) {
  ZAYA_REQUIRE(x.size() == shares_.size());
  std::vector<float> found(ceil_div(x.size(), BlockMaxima::kBlock));
  all_ = heavy_ = grouped_ = 0;
  for (size_t begin = 0; begin < x.size(); begin += kChunk) {
    const size_t n = std::min(kChunk, x.size() - begin);
    float* const part = shares_.data() + begin;
    HWY_DYNAMIC_DISPATCH(exp_shares)(part, x.data() + begin, top, temperature, n);
    HWY_DYNAMIC_DISPATCH(block_maxima)(found.data() + begin / BlockMaxima::kBlock, part, n);
    all_ += HWY_DYNAMIC_DISPATCH(sum_weights)(part, n, 0);
    if (limit > 0) heavy_ += HWY_DYNAMIC_DISPATCH(sum_weights)(part, n, static_cast<double>(limit));
  }
  if (limit == 0) heavy_ = all_;
  maxima_.build(shares_, std::move(found));
}

}  // namespace zaya
#endif  // HWY_ONCE
