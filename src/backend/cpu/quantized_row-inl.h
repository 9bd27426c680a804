// A row of activations as integers, for products with integer weights; included once per
// instruction set.

#if defined(ZAYA_QUANTIZED_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZAYA_QUANTIZED_ROW_INL_H_
#undef ZAYA_QUANTIZED_ROW_INL_H_
#else
#define ZAYA_QUANTIZED_ROW_INL_H_
#endif

#include "backend/cpu/int8_dots-inl.h"
#include "core/ceil_div.h"
#include "core/weight.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

inline constexpr int64_t kMostVectorBytes = 64;

// The K inputs of one row, as the codes of a weight meet them. A plane holds the inputs that one
// load of codes is multiplied with: for int8 all of them; for int4, whose bytes hold two codes, the
// first 16 of every group, and a second plane the other 16. A lane is four bytes of a plane.
// Everything is padded with zeros to whole vectors.
struct QuantizedRow {
  int8_t* codes;         // [plane], the second plane after the first
  float* scales;         // [plane / 4]: of the lane's group
  int32_t* corrections;  // [plane / 4]: what unsigned weight codes add to the lane's sum, negated
};

// Bytes of a plane.
inline int64_t plane_bytes(WeightFormat format, int64_t K) {
  return round_up(format == WeightFormat::int4 ? K / 2 : K, kMostVectorBytes);
}

inline int64_t row_bytes(WeightFormat format, int64_t K) {
  const int64_t plane = plane_bytes(format, K);
  return plane * (format == WeightFormat::int4 ? 2 : 1) + 2 * plane;
}

inline QuantizedRow row_at(char* memory, WeightFormat format, int64_t K) {
  const int64_t plane = plane_bytes(format, K);
  char* scales = memory + plane * (format == WeightFormat::int4 ? 2 : 1);
  return {reinterpret_cast<int8_t*>(memory), reinterpret_cast<float*>(scales),
          reinterpret_cast<int32_t*>(scales + plane)};
}

// Rounds a group to integers; returns its scale, NaN when the group is not finite.
template <class T>
HWY_INLINE float quantize_group(int8_t* codes, const T* x) {
  const FullTag d;
  const hn::Rebind<int8_t, FullTag> d8;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d), nothing = hn::Zero(d);
  for (int64_t i = 0; i < kQuantGroup; i += lanes) {
    const auto v = load(d, x + i);
    most = hn::Max(most, hn::Abs(v));
    nothing = hn::MulAdd(v, hn::Zero(d), nothing);  // NaN where v is not finite
  }
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  const auto inverse = hn::Set(d, largest > 0 ? 127.0f / largest : 0.0f);
  for (int64_t i = 0; i < kQuantGroup; i += lanes) {
    const auto rounded = hn::NearestInt(hn::Mul(load(d, x + i), inverse));
    hn::StoreU(hn::DemoteTo(d8, rounded), d8, codes + i);
  }
  return largest / 127.0f + hn::GetLane(hn::SumOfLanes(d, nothing));
}

// The corrections for codes that stand `zero` above their values: -zero times each lane's sum.
#if HWY_TARGET == HWY_SCALAR
template <class HasDots>
void write_corrections(const QuantizedRow&, int64_t, int, int32_t) {}  // needs none: see dot_codes
#else
template <class HasDots>
void write_corrections(const QuantizedRow& row, int64_t plane, int planes, int32_t zero) {
  const IntTag d;
  const ByteTag d8;
  const auto ones = hn::Set(d8, 1);
  const auto* bytes = reinterpret_cast<const uint8_t*>(row.codes);
  for (int64_t i = 0; i < plane; i += static_cast<int64_t>(hn::Lanes(d8))) {
    Ints sum = hn::Zero(d);
    for (int p = 0; p < planes; ++p)
      sum = add_small_dots<HasDots>(sum, ones, hn::LoadU(d8, bytes + p * plane + i));
    hn::StoreU(hn::Mul(sum, hn::Set(d, -zero)), d, row.corrections + i / 4);
  }
}
#endif

template <class HasDots, class T>
void quantize_row(char* memory, WeightFormat format, const T* x, int64_t K) {
  const bool halves = format == WeightFormat::int4;
  const int64_t plane = plane_bytes(format, K), group_lanes = halves ? 4 : 8;
  const QuantizedRow row = row_at(memory, format, K);
  int8_t group[kQuantGroup];
  for (int64_t g = 0; g < K / kQuantGroup; ++g) {
    const float scale =
        quantize_group(halves ? group : row.codes + g * kQuantGroup, x + g * kQuantGroup);
    if (halves) {
      std::memcpy(row.codes + g * 16, group, 16);
      std::memcpy(row.codes + plane + g * 16, group + 16, 16);
    }
    std::fill_n(row.scales + g * group_lanes, group_lanes, scale);
  }
  const int64_t used = halves ? K / 2 : K;
  for (int p = 0; p < (halves ? 2 : 1); ++p)
    std::fill(row.codes + p * plane + used, row.codes + (p + 1) * plane, int8_t{0});
  std::fill(row.scales + used / 4, row.scales + plane / 4, 0.0f);
  write_corrections<HasDots>(row, plane, halves ? 2 : 1, halves ? 8 : 128);
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#endif
