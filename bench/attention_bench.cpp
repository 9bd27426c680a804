// Causal attention in ZAYA1-8B's shape: bound by arithmetic, of which half is masked away.

#include <array>
#include <cmath>

#include "bench/measure.h"
#include "ops/attention/attention.h"

namespace zaya::bench {
namespace {

constexpr int64_t T = 1024, d = 128, nq = 8, nk = 2;
const AttentionShape kShape{nq, nk, d, 0, 1 / std::sqrt(static_cast<float>(d))};
const std::array<AttentionSpan, 1> kSpans{AttentionSpan{0, T, 0, T}};
// One product of queries with the keys they see.
constexpr double kProduct = 2.0 * nq * d * (double{T} * (T + 1) / 2);

void attention_forward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor q = in.normal(format, {T, nq * d}), k = in.normal(format, {T, nk * d});
  const Tensor v = in.normal(format, {T, nk * d}), o = in.zeros(format, {T, nq * d});
  const Tensor lse = in.zeros(DType::f32, {T, nq});
  measure(state, {.flops = 2 * kProduct, .operands = format},
          [&] { attention_forward(ctx, o, lse, q, k, v, kSpans, kShape); });
}
ZAYA_BENCHMARK_FORMATS(attention_forward);

void attention_backward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor q = in.normal(format, {T, nq * d}), k = in.normal(format, {T, nk * d});
  const Tensor v = in.normal(format, {T, nk * d}), o = in.zeros(format, {T, nq * d});
  const Tensor lse = in.zeros(DType::f32, {T, nq}), d_o = in.normal(format, {T, nq * d});
  const Tensor dq = in.zeros(format, {T, nq * d}), dk = in.zeros(format, {T, nk * d});
  const Tensor dv = in.zeros(format, {T, nk * d});
  attention_forward(ctx, o, lse, q, k, v, kSpans, kShape);
  // Scores again, then dV, dP, dQ and dK.
  measure(state, {.flops = 5 * kProduct, .operands = format},
          [&] { attention_backward(ctx, dq, dk, dv, d_o, o, lse, q, k, v, kSpans, kShape); });
}
ZAYA_BENCHMARK_FORMATS(attention_backward);

}  // namespace
}  // namespace zaya::bench
