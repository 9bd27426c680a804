#include "checkpoint/widen.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace zaya {
namespace {

// IEEE half precision to float.
float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace

void widen(const Tensor& to, const Tensor& from) {
  ZAYA_REQUIRE(is_float(from.dtype) && to.size() == from.size());
  float* out = to.as<float>();
  const int64_t n = to.size();
  if (from.dtype == DType::f32) {
    std::copy_n(from.as<float>(), n, out);
  } else if (from.dtype == DType::bf16) {
    const bf16* in = from.as<bf16>();
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
  } else {
    const auto* in = static_cast<const uint16_t*>(from.data);
    for (int64_t i = 0; i < n; ++i) out[i] = half_to_float(in[i]);
  }
}

bool all_finite(const Tensor& x) {
  return visit_activation(x.dtype, [&]<class T>() {
    const T* values = x.as<T>();
    return std::all_of(values, values + x.size(),
                       [](T value) { return std::isfinite(static_cast<float>(value)); });
  });
}

}  // namespace zaya
