#pragma once

#include <vector>

#include "backend/cpu/instruction_set.h"

namespace zaya::test {

// The formats that this machine multiplies.
inline std::vector<DType> product_formats() {
  return multiplies_bf16() ? std::vector{DType::f32, DType::bf16} : std::vector{DType::f32};
}

}  // namespace zaya::test
