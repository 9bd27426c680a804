// Cross entropy over ZAYA1's vocabulary: bound by memory, one read and one write of the logits.

#include "bench/measure.h"
#include "ops/loss/cross_entropy.h"

namespace zaya::bench {
namespace {

constexpr int64_t R = 64, V = 262272;

// The argument is the format of dlogits.
void cross_entropy_forward_backward(benchmark::State& state) {
  Context ctx;
  Inputs in;
  const DType format = activation(state);
  const Tensor logits = in.normal(DType::f32, {R, V}), labels = in.zeros(DType::i32, {R});
  const Tensor dlogits = in.zeros(format, {R, V}), losses = in.zeros(DType::f32, {R});
  measure(state, {.bytes = double{R} * V * (4 + size_of(format))},
          [&] { cross_entropy_forward_backward(ctx, losses, dlogits, logits, labels, 1.0f / R); });
}
ZAYA_BENCHMARK_FORMATS(cross_entropy_forward_backward);

}  // namespace
}  // namespace zaya::bench
