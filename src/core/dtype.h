#pragma once
// The number formats a tensor can hold, and the one place that turns a format into a type.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zaya {

// bfloat16: the upper half of an IEEE float. Conversion from float rounds to nearest even.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = nan ? static_cast<uint16_t>((u >> 16) | 0x40u)
               : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

enum class DType : uint8_t { f32, bf16, f16, f64, i64, i32, i16, i8, u8, u16, u32, u64, boolean };

size_t size_of(DType dtype);
// The name safetensors uses: "F32", "BF16", "I64", ...
std::string_view name_of(DType dtype);
// The inverse of name_of. Throws Error for a name that is none of them.
DType dtype_from_name(std::string_view name);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};

[[noreturn]] void fail_activation_dtype(DType dtype);

// Calls f.template operator()<T>() with the activation type: float or bf16.
template <class F>
decltype(auto) visit_activation(DType dtype, F&& f) {
  if (dtype == DType::f32) return f.template operator()<float>();
  if (dtype == DType::bf16) return f.template operator()<bf16>();
  fail_activation_dtype(dtype);
}

}  // namespace zaya
