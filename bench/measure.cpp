#include "bench/measure.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "backend/cpu/threads.h"
#include "ops/elementwise/elementwise.h"

namespace zaya::bench {
namespace {

// The shortest of a few runs: another process's work makes a run longer, never shorter.
template <class F>
double best_seconds(int runs, F&& call) {
  double best = 1e30;
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count());
  }
  return best;
}

double measure_gemm_peak() {
  constexpr int64_t n = 1024;
  Inputs inputs;
  const Tensor a = inputs.normal(DType::f32, {n, n}), b = inputs.normal(DType::f32, {n, n});
  const Tensor c = inputs.zeros(DType::f32, {n, n});
  const double seconds = best_seconds(5, [&] {
    dnnl_sgemm('N', 'N', n, n, n, 1.0f, a.as<float>(), n, b.as<float>(), n, 0.0f, c.as<float>(), n);
  });
  return 2.0 * n * n * n / seconds;
}

double measure_memory_bandwidth() {
  constexpr int64_t n = 32 << 20, piece = 1 << 16;
  Inputs inputs;
  float* a = inputs.zeros(DType::f32, {n}).as<float>();
  float* b = inputs.zeros(DType::f32, {n}).as<float>();
  float* c = inputs.zeros(DType::f32, {n}).as<float>();
  const double seconds = best_seconds(5, [&] {
    parallel_ranges(n, piece, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) c[i] = a[i] + 3.0f * b[i];
    });
  });
  return 3.0 * n * sizeof(float) / seconds;
}

}  // namespace

double gemm_peak() {
  static const double peak = measure_gemm_peak();
  return peak;
}

double memory_bandwidth() {
  static const double bandwidth = measure_memory_bandwidth();
  return bandwidth;
}

void report(benchmark::State& state, const Work& work, double seconds_per_call) {
  const double memory_seconds = work.bytes / memory_bandwidth();
  const double gemm_seconds = work.flops / gemm_peak();
  const bool by_memory = memory_seconds > gemm_seconds;
  const double amount = by_memory ? work.bytes : work.flops;
  state.counters[by_memory ? "GB/s" : "GFLOP/s"] = amount / seconds_per_call / 1e9;
  state.counters["ceiling"] = (by_memory ? memory_bandwidth() : gemm_peak()) / 1e9;
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
