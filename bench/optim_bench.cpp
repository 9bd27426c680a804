// The optimizers: AdamW is bound by memory, Newton-Schulz by arithmetic.

#include <algorithm>

#include "bench/measure.h"
#include "ops/optim/adamw.h"
#include "ops/optim/muon.h"

namespace zaya::bench {
namespace {

void adamw_update(benchmark::State& state) {
  Context ctx;
  Inputs in;
  constexpr int64_t n = 16 << 20;
  const Tensor weight = in.normal(DType::f32, {n}), gradient = in.normal(DType::f32, {n});
  const Tensor first = in.zeros(DType::f32, {n}), second = in.zeros(DType::f32, {n});
  const AdamWSettings settings{.learning_rate = 1e-3f};
  measure(state, {.bytes = 7.0 * 4 * n},  // four read, three of them written
          [&] { adamw_update(ctx, weight, first, second, gradient, settings); });
}
ZAYA_BENCHMARK(adamw_update);

// Five steps, each: the Gram matrix, its square, and their combination times X.
void newton_schulz(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const int64_t rows = state.range(0), columns = state.range(1);
  const Tensor x = in.normal(DType::f32, {rows, columns}), out = in.zeros(DType::f32, x.shape);
  const double s = std::min(rows, columns), l = std::max(rows, columns);
  measure(state, {.flops = 5 * (4 * s * s * l + 2 * s * s * s)},
          [&] { newton_schulz(ctx, out, x); });
}
ZAYA_BENCHMARK(newton_schulz)->Args({256, 2048})->Args({2048, 256})->Args({512, 512});

}  // namespace
}  // namespace zaya::bench
