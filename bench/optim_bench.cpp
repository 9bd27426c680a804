// The optimizers: AdamW is bound by memory, Newton-Schulz by arithmetic.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "backend/cpu/gemm.h"
#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "bench/measure.h"
#include "ops/elementwise/elementwise.h"
#include "ops/optim/adamw.h"
#include "ops/optim/muon.h"
#include "ops/optim/newton_schulz.h"
#include "ops/optim/sum_squares.h"

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

// GFLOP/s of the operations that are needed, half of each symmetric product left out.
void newton_schulz(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const int64_t rows = state.range(0), columns = state.range(1);
  const Tensor x = in.normal(DType::f32, {rows, columns}), out = in.zeros(DType::f32, x.shape);
  measure(state, {.flops = 2 * newton_schulz_multiplications(rows, columns, DType::f32)},
          [&] { newton_schulz(ctx, out, x); });
}
ZAYA_BENCHMARK(newton_schulz)->Args({256, 2048})->Args({2048, 256})->Args({512, 512});

// The iteration as it is usually written, for x [S, L], S <= L: three full products a step, and all
// that they read or write in one format, T.
template <class T>
struct PlainNewtonSchulz {
  Inputs in;
  Tensor scaled, x, next, gram, polynomial;
  explicit PlainNewtonSchulz(Shape shape)
      : scaled(in.zeros(DType::f32, shape)),
        x(in.zeros(DTypeOf<T>::value, shape)),
        next(in.zeros(x.dtype, shape)),
        gram(in.zeros(x.dtype, {shape[0], shape[0]})),
        polynomial(in.zeros(x.dtype, gram.shape)) {}

  void step() {
    constexpr float a = 3.4445f, b = -4.7750f, c = 2.0315f;
    const int64_t size = gram.rows();
    const T* g = gram.as<T>();
    T* p = polynomial.as<T>();
    gemm({.c = gram, .a = x, .b = x, .transpose_b = true});
    gemm({.c = polynomial, .a = gram, .b = gram});
    const auto as_float = [](T v) { return static_cast<float>(v); };
    parallel_ranges(size, 16, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin * size; i < end * size; ++i)
        p[i] = T(b * as_float(g[i]) + c * as_float(p[i]));
      for (int64_t i = begin; i < end; ++i) p[i * size + i] = T(as_float(p[i * size + i]) + a);
    });
    gemm({.c = next, .a = polynomial, .b = x});
    std::swap(x, next);
  }
  void operator()(Context& ctx, const Tensor& from) {
    convert(ctx, scaled, from);
    scale(ctx, scaled, static_cast<float>(1 / std::sqrt(sum_squares(ctx, scaled))));
    convert(ctx, x, scaled);
    for (int i = 0; i < 5; ++i) step();
  }
};

// The shortest time of each of a few calls, made in turn: what another process does in between
// makes times longer, never shorter.
template <class... Call>
std::array<double, sizeof...(Call)> shortest_ms(benchmark::State& state, Call&&... call) {
  using Clock = std::chrono::steady_clock;
  std::array<double, sizeof...(Call)> shortest;
  shortest.fill(1e30);
  const auto time = [&](size_t i, auto& f) {
    const auto start = Clock::now();
    f();
    const std::chrono::duration<double, std::milli> ms = Clock::now() - start;
    shortest[i] = std::min(shortest[i], ms.count());
  };
  (call(), ...);
  for (auto _ : state) {
    size_t i = 0;
    (time(i++, call), ...);
  }
  return shortest;
}

// The plain form in f32, ours in the row's format, and the plain form in it.
void newton_schulz_against_plain(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType products = activation(state);
  if (products != multiplied_format(products)) {
    state.SkipWithError("this machine does not multiply bf16");
    return;
  }
  set_thread_count(static_cast<int>(state.range(3)));
  const Tensor x = in.normal(DType::f32, {state.range(1), state.range(2)});
  const Tensor out = in.zeros(DType::f32, x.shape);
  PlainNewtonSchulz<float> plain(x.shape);
  PlainNewtonSchulz<bf16> rounded(x.shape);
  const auto [f32_ms, ours_ms, plain_ms] = shortest_ms(
      state, [&] { plain(ctx, x); }, [&] { newton_schulz(ctx, out, x, products); },
      [&] { products == DType::bf16 ? rounded(ctx, x) : plain(ctx, x); });
  set_thread_count(0);
  state.counters["plain_f32_ms"] = f32_ms;
  state.counters["plain_ms"] = plain_ms;
  state.counters["ours_ms"] = ours_ms;
  state.counters["ratio_f32"] = f32_ms / ours_ms;
  state.counters["ratio"] = plain_ms / ours_ms;
}
// Training gives matrices whole to one thread each where there are many: hence one thread, too.
ZAYA_BENCHMARK(newton_schulz_against_plain)
    ->ArgNames({"bf16", "rows", "columns", "threads"})
    ->ArgsProduct({{0, 1}, {512}, {512, 1024, 2048}, {2, 1}})
    ->ArgsProduct({{0, 1}, {1024}, {1024, 2048}, {2, 1}})
    ->ArgsProduct({{0, 1}, {2048}, {2048}, {2, 1}});

}  // namespace
}  // namespace zaya::bench
