// The products of decoding: a row or a few with a weight read once, bound by memory. Arguments:
// format (0 f32, 1 bf16, 2 int8, 3 int4), rows, N, K. The weights are larger than caches are, or
// many (experts): each call takes the next.

#include "backend/cpu/row_products.h"
#include "bench/measure.h"

namespace zaya::bench {
namespace {

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"format", "M", "N", "K"});
  for (const int64_t format : {0, 1, 2, 3}) {
    b->Args({format, 1, 262272, 2048});  // head
    b->Args({format, 1, 4096, 2048});    // an expert's gate and up
    b->Args({format, 1, 2048, 2048});    // an expert's down
    b->Args({format, 4, 4096, 2048});
  }
}

void decode(benchmark::State& state) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  Inputs in;
  const auto format = static_cast<WeightFormat>(state.range(0));
  const int64_t M = state.range(1), N = state.range(2), K = state.range(3);
  Arena plan;
  const int64_t bytes = plan_weight(plan, format, N, K).bytes();
  const int64_t count = std::max<int64_t>(1, kBytes / bytes);
  Arena memory(static_cast<size_t>(count) * plan.peak());
  std::vector<Weight> weights;
  for (int64_t i = 0; i < count; ++i) weights.push_back(plan_weight(memory, format, N, K));
  const Tensor x = in.normal(DType::bf16, {M, K}), y = in.zeros(DType::bf16, {M, N});
  int64_t next = 0;
  measure(state, {.bytes = static_cast<double>(bytes), .flops = 0, .reads_only = true}, [&] {
    const RowProduct p{y, x, weights[static_cast<size_t>(next++ % count)]};
    row_products({&p, 1});
  });
}
ZAYA_BENCHMARK(decode)->Apply(shapes);

}  // namespace
}  // namespace zaya::bench
