#pragma once
// Every figure beside its speed of light: a benchmark says how many bytes or operations one call
// needs at the least, and the ceiling is measured in the same run on the same threads.
//
//   build/bench/bench_norm --benchmark_min_time=0.1
//
// The ceilings are those of `zaya bench` (backend/cpu/gemm_peak.h, plan/machine.h), measured on
// first use. Operations that fit a cache can exceed the ceiling of the main memory.

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <vector>

#include "backend/context.h"
#include "core/arena.h"
#include "core/tensor.h"

namespace zaya::bench {

// The least one call has to do. Of the two, what takes longer at its ceiling is what the benchmark
// reports: GB/s or GFLOP/s, the ceiling, and the fraction of it that was reached.
struct Work {
  double bytes = 0;
  double flops = 0;
  DType operands = DType::f32;  // of products: bf16 ones are held against the bf16 peak
  bool reads_only = false;      // the ceiling is that of reading alone
};

void report(benchmark::State& state, const Work& work, double seconds_per_call);

// Runs `call` as the benchmark's loop, after one call that grows buffers and fills caches.
template <class F>
void measure(benchmark::State& state, const Work& work, F&& call) {
  call();
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) call();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  report(state, work, elapsed.count() / static_cast<double>(state.iterations()));
}

// Owns tensors of random numbers.
class Inputs {
 public:
  // normal(0, 1), f32 or bf16.
  Tensor normal(DType dtype, Shape shape);
  Tensor zeros(DType dtype, Shape shape);

 private:
  std::vector<std::unique_ptr<Arena>> arenas_;
};

// The benchmark's argument as a number format: 0 is f32, 1 is bf16.
inline DType activation(const benchmark::State& state) {
  return state.range(0) == 0 ? DType::f32 : DType::bf16;
}

}  // namespace zaya::bench

// A benchmark timed by the wall clock, as work of several threads must be.
#define ZAYA_BENCHMARK(function) BENCHMARK(function)->UseRealTime()->Unit(benchmark::kMillisecond)
// The same, once for f32 and once for bf16 activations.
#define ZAYA_BENCHMARK_FORMATS(function) ZAYA_BENCHMARK(function)->ArgName("bf16")->Arg(0)->Arg(1)
