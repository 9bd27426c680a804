#include "train/precision.h"

#include "backend/cpu/instruction_set.h"

namespace zaya {

DType resolve_precision(Precision precision) {
  if (precision == Precision::automatic) return multiplied_format(DType::bf16);
  return precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

Precision precision_of(DType compute) {
  return compute == DType::bf16 ? Precision::bf16 : Precision::f32;
}

std::string_view precision_name(DType compute) { return fields::enum_name(precision_of(compute)); }

std::string_view bf16_support() {
  return multiplies_bf16() ? "this machine multiplies bf16"
                           : "this machine has no bf16 instructions";
}

}  // namespace zaya
