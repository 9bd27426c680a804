#include "bench/measure.h"

#include <algorithm>

#include "backend/cpu/gemm_peak.h"
#include "backend/cpu/instruction_set.h"
#include "ops/elementwise/elementwise.h"
#include "plan/machine.h"

namespace zaya::bench {
namespace {

// Operations a second, measured on first use.
double gemm_peak(DType operands) {
  if (multiplied_format(operands) == DType::bf16) {
    static const double peak = measure_gemm_peak(DType::bf16);
    return peak;
  }
  static const double peak = measure_gemm_peak(DType::f32);
  return peak;
}

double memory_bandwidth(bool reads_only) {
  if (reads_only) {
    static const double bandwidth = measure_read_bandwidth();
    return bandwidth;
  }
  static const double bandwidth = measure_memory_bandwidth();
  return bandwidth;
}

}  // namespace

void report(benchmark::State& state, const Work& work, double seconds_per_call) {
  const double bandwidth = memory_bandwidth(work.reads_only);
  const double memory_seconds = work.bytes / bandwidth;
  const double peak = work.flops > 0 ? gemm_peak(work.operands) : 1;
  const double gemm_seconds = work.flops / peak;
  const bool by_memory = memory_seconds > gemm_seconds;
  const double amount = by_memory ? work.bytes : work.flops;
  state.counters[by_memory ? "GB/s" : "GFLOP/s"] = amount / seconds_per_call / 1e9;
  state.counters["ceiling"] = (by_memory ? bandwidth : peak) / 1e9;
  state.counters["fraction"] = std::max(memory_seconds, gemm_seconds) / seconds_per_call;
}

Tensor Inputs::zeros(DType dtype, Shape shape) {
  arenas_.push_back(std::make_unique<Arena>(shape.size() * size_of(dtype) + 64));
  return arenas_.back()->tensor(dtype, shape);
}

Tensor Inputs::normal(DType dtype, Shape shape) {
  Context ctx;
  const Tensor values = zeros(DType::f32, shape);
  fill_normal(ctx, values, arenas_.size(), 0, 1);
  if (dtype == DType::f32) return values;
  const Tensor converted = zeros(dtype, shape);
  convert(ctx, converted, values);
  return converted;
}

}  // namespace zaya::bench
