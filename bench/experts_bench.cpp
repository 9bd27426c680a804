// From the router's choice to the experts and back: bound by memory.

#include <array>

#include "bench/measure.h"
#include "ops/experts/combine.h"
#include "ops/experts/dispatch.h"
#include "ops/experts/swiglu.h"

namespace zaya::bench {
namespace {

constexpr int64_t T = 4096, D = 2048, I = 2048, E = 16;

void swiglu_forward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor gate_up = in.normal(format, {T, 2 * I}), y = in.zeros(format, {T, I});
  measure(state, {.bytes = 3.0 * T * I * size_of(format)},
          [&] { swiglu_forward(ctx, y, gate_up); });
}
ZAYA_BENCHMARK_FORMATS(swiglu_forward);

void swiglu_backward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor gate_up = in.normal(format, {T, 2 * I}), dy = in.normal(format, {T, I});
  const Tensor dgate_up = in.zeros(format, {T, 2 * I});
  measure(state, {.bytes = 5.0 * T * I * size_of(format)},
          [&] { swiglu_backward(ctx, dgate_up, dy, gate_up); });
}
ZAYA_BENCHMARK_FORMATS(swiglu_backward);

// Tokens dealt out to the experts as a router might: no order that helps the caches.
struct Sorted {
  Sorted() {
    Context ctx;
    const Tensor choice = in.zeros(DType::i32, {T});
    for (int64_t t = 0; t < T; ++t) choice.as<int32_t>()[t] = t * 2654435761u % 65521 % E;
    sort_by_expert(ctx, order, offsets, choice);
  }

  Inputs in;
  Tensor order = in.zeros(DType::i32, {T});
  Tensor offsets = in.zeros(DType::i32, {E + 2});
};

void gather_rows(benchmark::State& state) {
  Context ctx;
  Sorted sorted;
  const DType format = activation(state);
  const Tensor x = sorted.in.normal(format, {T, D}), y = sorted.in.zeros(format, {T, D});
  measure(state, {.bytes = 2.0 * T * D * size_of(format)},
          [&] { gather_rows(ctx, y, x, sorted.order, sorted.offsets); });
}
ZAYA_BENCHMARK_FORMATS(gather_rows);

void combine_forward(benchmark::State& state) {
  Context ctx;
  Sorted sorted;
  const DType format = activation(state);
  const Tensor x = sorted.in.normal(format, {T, D}), y = sorted.in.zeros(format, {T, D});
  const Tensor gate = sorted.in.normal(DType::f32, {T});
  measure(state, {.bytes = 2.0 * T * D * size_of(format)}, [&] {
    combine_forward(ctx, y, x, Tensor(), gate, sorted.order, sorted.offsets, Skip::zero);
  });
}
ZAYA_BENCHMARK_FORMATS(combine_forward);

}  // namespace
}  // namespace zaya::bench
