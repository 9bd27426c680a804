#include "plan/gemm_bench.h"

#include <algorithm>

#include "backend/cpu/gemm_peak.h"
#include "backend/cpu/instruction_set.h"

namespace zaya {
namespace {

void measure_ceilings(GemmSpeed& speed) {
  speed.memory_bandwidth = std::max(speed.memory_bandwidth, measure_memory_bandwidth());
  speed.f32_peak = std::max(speed.f32_peak, measure_gemm_peak(DType::f32));
  if (multiplies_bf16())
    speed.bf16_peak = std::max(speed.bf16_peak, measure_gemm_peak(DType::bf16));
}

}  // namespace

GemmSpeed measure_gemm(const ModelConfig& config, int64_t tokens, DType operands,
                       const BenchProgress& progress) {
  GemmSpeed speed;
  speed.multiplied = multiplied_format(operands);
  progress("the machine's ceilings", 0);
  measure_ceilings(speed);
  const std::vector<ProductShape> shapes = product_shapes(config, tokens);
  for (size_t i = 0; i < shapes.size(); ++i) {
    progress(shapes[i].name,
             0.25 + 0.5 * static_cast<double>(i) / static_cast<double>(shapes.size()));
    speed.products.push_back({shapes[i], measure_product(shapes[i], operands)});
  }
  progress("the machine's ceilings", 0.75);
  measure_ceilings(speed);
  return speed;
}

}  // namespace zaya
