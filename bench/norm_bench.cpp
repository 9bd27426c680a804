// RMSNorm, and the residual merge with the norm after it: bound by memory.

#include "bench/measure.h"
#include "ops/norm/merge_norm.h"
#include "ops/norm/rms_norm.h"

namespace zaya::bench {
namespace {

constexpr int64_t T = 4096, D = 2048;
constexpr double kElements = double{T} * D;

void rms_norm_forward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor x = in.normal(DType::f32, {T, D}), weight = in.normal(DType::f32, {D});
  const Tensor y = in.zeros(format, {T, D}), rstd = in.zeros(DType::f32, {T});
  const double bytes = kElements * (4 + size_of(format));
  measure(state, {.bytes = bytes}, [&] { rms_norm_forward(ctx, y, rstd, x, weight, 1e-5f); });
}
ZAYA_BENCHMARK_FORMATS(rms_norm_forward);

void rms_norm_backward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor x = in.normal(DType::f32, {T, D}), weight = in.normal(DType::f32, {D});
  const Tensor dy = in.normal(format, {T, D}), rstd = in.zeros(DType::f32, {T});
  const Tensor dx = in.zeros(DType::f32, {T, D}), dweight = in.zeros(DType::f32, {D});
  const double bytes = kElements * (size_of(format) + 4 + 8);  // dx is read and written
  measure(state, {.bytes = bytes},
          [&] { rms_norm_backward(ctx, dx, dweight, dy, x, weight, rstd); });
}
ZAYA_BENCHMARK_FORMATS(rms_norm_backward);

MergeVectors merge_vectors(Inputs& in) {
  return {in.normal(DType::f32, {D}), in.normal(DType::f32, {D}), in.normal(DType::f32, {D}),
          in.normal(DType::f32, {D})};
}

Merge merge_of(Inputs& in, DType format) {
  return {in.normal(DType::f32, {T, D}), in.normal(format, {T, D}), in.normal(DType::f32, {T, D}),
          merge_vectors(in)};
}

void merge_norm_forward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Merge merge = merge_of(in, format);
  const Tensor h = in.zeros(format, {T, D}), rstd = in.zeros(DType::f32, {T});
  const Tensor weight = in.normal(DType::f32, {D});
  const double bytes = kElements * (2 * size_of(format) + 8);
  measure(state, {.bytes = bytes}, [&] { merge_norm_forward(ctx, merge, h, rstd, weight, 1e-5f); });
}
ZAYA_BENCHMARK_FORMATS(merge_norm_forward);

void merge_norm_backward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Merge merge = merge_of(in, format);
  const MergeVectors dvectors = merge_vectors(in);
  const Tensor dx = in.zeros(DType::f32, {T, D}), d_o = in.zeros(format, {T, D});
  const Tensor dh = in.normal(DType::f32, {T, D}), rstd = in.zeros(DType::f32, {T});
  const Tensor weight = in.normal(DType::f32, {D}), dweight = in.zeros(DType::f32, {D});
  const double bytes = kElements * (2 * size_of(format) + 20);  // dx is read and written
  measure(state, {.bytes = bytes},
          [&] { merge_norm_backward(ctx, dx, d_o, dvectors, dweight, dh, merge, rstd, weight); });
}
ZAYA_BENCHMARK_FORMATS(merge_norm_backward);

}  // namespace
}  // namespace zaya::bench
