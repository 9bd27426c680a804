#include "backend/cpu/quantized_weight.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backend/cpu/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/quantized_weight.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

using IntTag = hn::RebindToSigned<FullTag>;

// Stores v, in bf16 by the machine's own rounding (which takes denormals for zero) where
// kInstruction says that it has it: many times as fast as by integer arithmetic.
template <bool kInstruction, class T>
HWY_INLINE void store_rounded(hn::Vec<FullTag> v, T* to) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (kInstruction && std::is_same_v<T, bf16>) {
    __m256i rounded;
    asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(v.raw));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), rounded);
    return;
  }
#endif
  store(v, FullTag(), to);
}

// One group of int8 codes.
template <bool kInstruction, class T>
HWY_INLINE void decode_int8(T* to, const int8_t* codes, float scale) {
  const FullTag d;
  const hn::Rebind<int8_t, FullTag> d8;
  const auto s = hn::Set(d, scale);
  for (int64_t i = 0; i < kQuantGroup; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto code = hn::ConvertTo(d, hn::PromoteTo(IntTag(), hn::LoadU(d8, codes + i)));
    store_rounded<kInstruction>(hn::Mul(code, s), to + i);
  }
}

// One group of int4 codes.
template <bool kInstruction, class T>
HWY_INLINE void decode_int4(T* to, const uint8_t* codes, float scale) {
  const FullTag d;
  const hn::Rebind<uint8_t, FullTag> d8;
  const auto s = hn::Set(d, scale);
  const auto value = [&](auto code) {
    return hn::Mul(hn::ConvertTo(d, hn::Sub(code, hn::Set(IntTag(), 8))), s);
  };
  for (int64_t i = 0; i < kQuantGroup / 2; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto both = hn::PromoteTo(IntTag(), hn::LoadU(d8, codes + i));
    store_rounded<kInstruction>(value(hn::And(both, hn::Set(IntTag(), 15))), to + i);
    store_rounded<kInstruction>(value(hn::ShiftRight<4>(both)), to + kQuantGroup / 2 + i);
  }
}

template <bool kInstruction, class T>
HWY_INLINE void decode(T* to, const Weight& w, int64_t n, int64_t begin, int64_t count) {
  const bf16* scales = w.scales.row<bf16>(n) + begin / kQuantGroup;
  const bool int8 = w.format() == WeightFormat::int8;
  const char* codes = w.values.address(n, int8 ? begin : begin / 2);
  for (int64_t g = 0; g < count / kQuantGroup; ++g, to += kQuantGroup) {
    const auto scale = static_cast<float>(scales[g]);
    if (int8)
      decode_int8<kInstruction>(to, reinterpret_cast<const int8_t*>(codes) + g * kQuantGroup,
                                scale);
    else
      decode_int4<kInstruction>(to, reinterpret_cast<const uint8_t*>(codes) + g * kQuantGroup / 2,
                                scale);
  }
}

void decode_f32(float* to, const Weight& w, int64_t n, int64_t begin, int64_t count) {
  decode<false>(to, w, n, begin, count);
}
void decode_bf16(bf16* to, const Weight& w, int64_t n, int64_t begin, int64_t count) {
  if (multiplies_bf16()) return decode<true>(to, w, n, begin, count);
  decode<false>(to, w, n, begin, count);
}

// Codes of a group under an inverse scale, and how well they can do under the best scale for them.
struct Fit {
  float products = 0;  // sum of x code
  float squares = 0;   // sum of code code
  // What the best scale, products / squares, takes off the squared error.
  float gain() const { return squares > 0 ? products * products / squares : 0; }
};

HWY_INLINE hn::Vec<FullTag> rounded_code(hn::Vec<FullTag> x, float inverse, float low, float high) {
  const FullTag d;
  const auto code = hn::Round(hn::Mul(x, hn::Set(d, inverse)));
  return hn::Min(hn::Max(code, hn::Set(d, low)), hn::Set(d, high));
}

Fit fit(const float* x, float inverse) {
  const FullTag d;
  auto products = hn::Zero(d), squares = hn::Zero(d);
  for (int64_t i = 0; i < kQuantGroup; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto v = hn::LoadU(d, x + i);
    const auto code = rounded_code(v, inverse, -8, 7);
    products = hn::MulAdd(v, code, products);
    squares = hn::MulAdd(code, code, squares);
  }
  return {hn::GetLane(hn::SumOfLanes(d, products)), hn::GetLane(hn::SumOfLanes(d, squares))};
}

// The value of the group that is farthest from 0, with its sign.
float farthest(const float* x) {
  return *std::max_element(x, x + kQuantGroup,
                           [](float a, float b) { return std::abs(a) < std::abs(b); });
}

bf16 int4_scale(const float* x) {
  constexpr int kTries = 10;  // to either side, a tenth of a code apart
  const float extreme = farthest(x);
  // Squares of values outside would leave f32.
  if (std::abs(extreme) < 1e-15f || std::abs(extreme) > 1e15f) return bf16(extreme / -8.0f);
  Fit best;
  for (int i = -kTries; i <= kTries; ++i) {
    const Fit tried = fit(x, -(8.0f + 0.1f * static_cast<float>(i)) / extreme);
    if (tried.gain() > best.gain()) best = tried;
  }
  return bf16(best.products / best.squares);
}

// codes [32] as floats, low to high.
void round_group(float* codes, const float* x, bf16 scale, float low, float high) {
  const FullTag d;
  const auto s = static_cast<float>(scale);
  const float inverse = s != 0 && std::isfinite(1 / s) ? 1 / s : 0;
  for (int64_t i = 0; i < kQuantGroup; i += static_cast<int64_t>(hn::Lanes(d)))
    hn::StoreU(rounded_code(hn::LoadU(d, x + i), inverse, low, high), d, codes + i);
}

void encode(const Weight& w, int64_t n, const float* x) {
  const bool int8 = w.format() == WeightFormat::int8;
  bf16* scales = w.scales.row<bf16>(n);
  char* out = w.values.address(n);
  float codes[kQuantGroup];
  for (int64_t g = 0; g < w.scales.columns(); ++g, x += kQuantGroup) {
    scales[g] = int8 ? bf16(std::abs(farthest(x)) / 127) : int4_scale(x);
    round_group(codes, x, scales[g], int8 ? -127 : -8, int8 ? 127 : 7);
    if (int8) {
      for (float code : codes) *out++ = static_cast<char>(code);
    } else {
      for (int i = 0; i < kQuantGroup / 2; ++i) {
        const int low = static_cast<int>(codes[i]) + 8;
        const int high = static_cast<int>(codes[i + kQuantGroup / 2]) + 8;
        *out++ = static_cast<char>(low | (high << 4));
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(decode_f32);
HWY_EXPORT(decode_bf16);
HWY_EXPORT(encode);
}  // namespace

void decode_weights(float* to, const Weight& weight, int64_t n, int64_t begin, int64_t count) {
  HWY_DYNAMIC_DISPATCH(decode_f32)(to, weight, n, begin, count);
}

void decode_weights(bf16* to, const Weight& weight, int64_t n, int64_t begin, int64_t count) {
  HWY_DYNAMIC_DISPATCH(decode_bf16)(to, weight, n, begin, count);
}

void encode_weights(const Weight& weight, int64_t n, const float* values) {
  HWY_DYNAMIC_DISPATCH(encode)(weight, n, values);
}

}  // namespace zaya
#endif
