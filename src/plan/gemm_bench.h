#pragma once
// How near our own products come to the machine's ceiling, in the shapes of a model.

#include <functional>
#include <string_view>
#include <vector>

#include "plan/machine.h"

namespace zaya {

// Told what is measured, and how much of the whole is done (0 to 1).
using BenchProgress = std::function<void(std::string_view stage, double done)>;

struct MeasuredProduct {
  ProductShape shape;
  ProductSpeed speed;
};

struct GemmSpeed {
  DType multiplied = DType::f32;  // what the products below were multiplied as
  double f32_peak = 0;            // operations a second
  double bf16_peak = 0;           // 0 where the machine does not multiply bf16
  double memory_bandwidth = 0;    // bytes a second
  std::vector<MeasuredProduct> products;

  double peak() const { return multiplied == DType::bf16 ? bf16_peak : f32_peak; }
};

// The larger products of a batch of `tokens`, operands f32 or bf16. Takes some seconds. The
// ceilings are measured before and after, and the better ones count.
GemmSpeed measure_gemm(const ModelConfig& config, int64_t tokens, DType operands,
                       const BenchProgress& progress);

}  // namespace zaya
