// Matrix products in the shapes of the model: bound by arithmetic, but for the single row of
// decoding, which is bound by memory. Arguments: bf16, M, N, K.

#include "backend/cpu/gemm.h"
#include "bench/measure.h"

namespace zaya::bench {
namespace {

constexpr int64_t T = 1024, D = 2048;

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"bf16", "M", "N", "K"});
  for (const int64_t format : {0, 1}) {
    b->Args({format, T, 1024, D});     // query projection
    b->Args({format, T, 256, D});      // router's way down, keys, values
    b->Args({format, 64, 2 * D, D});   // one expert's gate and up, few tokens
    b->Args({format, 256, 2 * D, D});  // the same, more tokens
    b->Args({format, 1, 1024, D});     // decoding
  }
}

Work work_of(const benchmark::State& state, const Gemm& product) {
  const double flops = 2.0 * state.range(1) * state.range(2) * state.range(3);
  const int64_t out_bytes = product.c.bytes() * (product.accumulate ? 2 : 1);
  return {.bytes = static_cast<double>(product.a.bytes() + product.b.bytes() + out_bytes),
          .flops = flops,
          .operands = product.a.dtype};
}

// y = x W^T
void linear_forward(benchmark::State& state) {
  Inputs in;
  const DType format = activation(state);
  const int64_t M = state.range(1), N = state.range(2), K = state.range(3);
  const Gemm product{.c = in.zeros(format, {M, N}),
                     .a = in.normal(format, {M, K}),
                     .b = in.normal(format, {N, K}),
                     .transpose_b = true};
  measure(state, work_of(state, product), [&] { gemm(product); });
}
ZAYA_BENCHMARK(linear_forward)->Apply(shapes);

// dW += dy^T x
void linear_backward_weight(benchmark::State& state) {
  Inputs in;
  const DType format = activation(state);
  const int64_t M = state.range(1), N = state.range(2), K = state.range(3);
  const Gemm product{.c = in.zeros(DType::f32, {N, K}),
                     .a = in.normal(format, {M, N}),
                     .b = in.normal(format, {M, K}),
                     .transpose_a = true,
                     .accumulate = true};
  measure(state, work_of(state, product), [&] { gemm(product); });
}
ZAYA_BENCHMARK(linear_backward_weight)->Apply(shapes);

}  // namespace
}  // namespace zaya::bench
