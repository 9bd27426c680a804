// What CCA adds to attention, in ZAYA1-8B's shape: the depthwise convolution and the norms are
// bound by memory, the grouped convolution by arithmetic.

#include <numeric>

#include "bench/measure.h"
#include "ops/cca/depthwise_conv.h"
#include "ops/cca/grouped_conv.h"
#include "ops/cca/qk_norm_rope.h"

namespace zaya::bench {
namespace {

constexpr int64_t T = 4096, d = 128, nq = 8, nk = 2, C = (nq + nk) * d, kTaps = 2;
constexpr double kElements = double{T} * C;
const std::vector<int32_t> kOffsets{0, static_cast<int32_t>(T)};
const QkShape kShape{nq, nk, d, d / 2};

void depthwise_conv_forward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor x = in.normal(format, {T, C}), y = in.zeros(format, {T + kTaps - 1, C});
  const Tensor weight = in.normal(DType::f32, {C, kTaps}), bias = in.normal(DType::f32, {C});
  measure(state, {.bytes = kElements * 2 * size_of(format)}, [&] {
    depthwise_conv_forward(ctx, y, x, Tensor(), weight, bias, Ragged{kOffsets}, kTaps - 1);
  });
}
ZAYA_BENCHMARK_FORMATS(depthwise_conv_forward);

void depthwise_conv_backward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor x = in.normal(format, {T, C}), dx = in.zeros(format, {T, C});
  const Tensor dy = in.normal(DType::f32, {T + kTaps - 1, C});
  const Tensor other = in.normal(DType::f32, {T, C});
  const Tensor weight = in.normal(DType::f32, {C, kTaps});
  const Tensor dweight = in.zeros(DType::f32, {C, kTaps}), dbias = in.zeros(DType::f32, {C});
  measure(state, {.bytes = kElements * (8 + 2 * size_of(format))}, [&] {
    depthwise_conv_backward(ctx, dx, dweight, dbias, other, dy, x, weight, Ragged{kOffsets},
                            kTaps - 1);
  });
}
ZAYA_BENCHMARK_FORMATS(depthwise_conv_backward);

void grouped_conv_forward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor x = in.normal(format, {T + kTaps - 1, C}), y = in.zeros(DType::f32, {T, C});
  const Tensor weight = in.normal(DType::f32, {C, d, kTaps}), bias = in.normal(DType::f32, {C});
  measure(state, {.flops = kElements * 2 * d * kTaps, .operands = format},
          [&] { grouped_conv_forward(ctx, y, x, weight, bias, Ragged{kOffsets}); });
}
ZAYA_BENCHMARK_FORMATS(grouped_conv_forward);

void grouped_conv_backward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor x = in.normal(format, {T + kTaps - 1, C});
  const Tensor dx = in.zeros(DType::f32, {T + kTaps - 1, C}), dy = in.normal(DType::f32, {T, C});
  const Tensor weight = in.normal(DType::f32, {C, d, kTaps});
  const Tensor dweight = in.zeros(DType::f32, {C, d, kTaps}), dbias = in.zeros(DType::f32, {C});
  measure(state, {.flops = kElements * 4 * d * kTaps, .operands = format},
          [&] { grouped_conv_backward(ctx, dx, dweight, dbias, dy, x, weight, Ragged{kOffsets}); });
}
ZAYA_BENCHMARK_FORMATS(grouped_conv_backward);

// What the forward and the backward of qk_norm_rope read.
struct QkInputs {
  explicit QkInputs(DType format) : qk0(in.normal(format, {T, C})) {
    rotary_tables(cos, sin, 10000);
    std::iota(positions.as<int32_t>(), positions.as<int32_t>() + T, 0);
  }

  Inputs in;
  Tensor z = in.normal(DType::f32, {T, C});
  Tensor qk0;
  Tensor temp = in.normal(DType::f32, {nk});
  Tensor cos = in.zeros(DType::f32, {T, d / 4});
  Tensor sin = in.zeros(DType::f32, {T, d / 4});
  Tensor positions = in.zeros(DType::i32, {T});
};

void qk_norm_rope_forward(benchmark::State& state) {
  Context ctx;
  const DType format = activation(state);
  QkInputs a(format);
  const Tensor q = a.in.zeros(format, {T, nq * d}), k = a.in.zeros(format, {T, nk * d});
  measure(state, {.bytes = kElements * (4 + 2 * size_of(format))}, [&] {
    qk_norm_rope_forward(ctx, q, k, a.z, a.qk0, a.temp, a.cos, a.sin, a.positions, kShape);
  });
}
ZAYA_BENCHMARK_FORMATS(qk_norm_rope_forward);

void qk_norm_rope_backward(benchmark::State& state) {
  Context ctx;
  const DType format = activation(state);
  QkInputs a(format);
  const Tensor dq = a.in.normal(format, {T, nq * d}), dk = a.in.normal(format, {T, nk * d});
  const Tensor dz = a.in.zeros(DType::f32, {T, C}), dqk0 = a.in.zeros(DType::f32, {T, C});
  const Tensor dtemp = a.in.zeros(DType::f32, {nk});
  measure(state, {.bytes = kElements * (12 + 2 * size_of(format))}, [&] {
    qk_norm_rope_backward(ctx, dz, dqk0, dtemp, dq, dk, a.z, a.qk0, a.temp, a.cos, a.sin,
                          a.positions, kShape);
  });
}
ZAYA_BENCHMARK_FORMATS(qk_norm_rope_backward);

}  // namespace
}  // namespace zaya::bench
