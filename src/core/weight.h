#pragma once
// A weight as products read it: plain values, or integer codes of which 32 neighbours share a
// scale. N outputs, K inputs.

#include <vector>

#include "core/tensor.h"

namespace zaya {

enum class WeightFormat { f32, bf16, int8, int4 };

// Inputs that share a scale.
inline constexpr int64_t kQuantGroup = 32;

// A view, as a tensor is. Stacked matrices ([E, N, K]) are one matrix of E N rows.
//   f32, bf16: values [N, K].
//   int8: values [N, K] i8, codes from -127 to 127;  weight = code * scale.
//   int4: values [N, K / 2] u8, two codes from 0 to 15 a byte;  weight = (code - 8) * scale. Byte i
//         of a group's 16 holds the code of input i in its low half, of input i + 16 in its high.
//   scales [N, K / 32] bf16; null data where values are plain. K is a multiple of 32.
struct Weight {
  Tensor values;
  Tensor scales;

  Weight() = default;
  Weight(const Tensor& plain) : values(plain) {}  // NOLINT: a plain tensor is a weight
  Weight(const Tensor& codes, const Tensor& scales) : values(codes), scales(scales) {}

  bool quantized() const { return values.dtype == DType::i8 || values.dtype == DType::u8; }
  WeightFormat format() const {
    if (values.dtype == DType::i8) return WeightFormat::int8;
    if (values.dtype == DType::u8) return WeightFormat::int4;
    return values.dtype == DType::bf16 ? WeightFormat::bf16 : WeightFormat::f32;
  }
  int64_t rows() const { return values.rows(); }
  int64_t columns() const { return values.columns() * (values.dtype == DType::u8 ? 2 : 1); }
  int64_t bytes() const { return values.bytes() + (scales ? scales.bytes() : 0); }
  explicit operator bool() const { return static_cast<bool>(values); }

  Weight row_range(int64_t begin, int64_t end) const {
    return {values.row_range(begin, end), scales ? scales.row_range(begin, end) : Tensor()};
  }
};

// The matrices that a tensor [E, N, K] stacks.
inline std::vector<Weight> stacked_matrices(const Weight& weight) {
  const int64_t count = weight.values.shape[0], rows = weight.values.shape[1];
  std::vector<Weight> matrices;
  for (int64_t e = 0; e < count; ++e)
    matrices.push_back(weight.row_range(e * rows, (e + 1) * rows));
  return matrices;
}

class Arena;
// A weight [rows, inputs] out of an arena.
Weight plan_weight(Arena& arena, WeightFormat format, int64_t rows, int64_t inputs);

// Whether a matrix of so many inputs can be held as codes.
constexpr bool quantizable(int64_t inputs) { return inputs % kQuantGroup == 0; }

}  // namespace zaya
