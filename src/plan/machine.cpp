#include "plan/machine.h"

#include <algorithm>

#include "backend/best_seconds.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/threads.h"
#include "core/arena.h"
#include "model/head.h"

namespace zaya {

std::vector<ProductShape> product_shapes(const ModelConfig& c, int64_t tokens) {
  const int64_t D = c.hidden_size, I = c.moe_intermediate_size;
  const int64_t share = std::max<int64_t>(1, tokens / c.num_experts);
  return {{"queries", tokens, c.query_channels(), D},
          {"keys", tokens, c.key_channels(), D},
          {"attention's output", tokens, D, c.query_channels()},
          {"an expert's gate and up", share, 2 * I, D},
          {"an expert's down", share, D, I},
          {"head", std::min(tokens, head_chunk_rows(c.vocab_size)), c.vocab_size, D}};
}

ProductSpeed measure_product(const ProductShape& s, DType dtype) {
  Context ctx;
  Arena memory(static_cast<size_t>(s.m * s.k + s.n * s.k + s.m * s.n) * size_of(dtype) +
               static_cast<size_t>(s.n * s.k) * sizeof(float) + 4 * 64);
  const Tensor x = memory.tensor(dtype, {s.m, s.k}), y = memory.tensor(dtype, {s.m, s.n});
  const Tensor weight = memory.tensor(dtype, {s.n, s.k});
  const Tensor dweight = memory.tensor(DType::f32, {s.n, s.k});
  const double flops =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const auto rate = [&](const Gemm& product) {
    return flops / best_seconds(0.1, [&] { gemm(product); });
  };
  return {rate({.c = y, .a = x, .b = weight, .transpose_b = true}),
          rate({.c = x, .a = y, .b = weight}),
          rate({.c = dweight, .a = y, .b = x, .transpose_a = true, .accumulate = true})};
}

double measure_memory_bandwidth() {
  constexpr int64_t n = 32 << 20, piece = 1 << 16;
  Arena memory(3 * n * sizeof(float));
  float* a = memory.tensor(DType::f32, {n}).as<float>();
  float* b = memory.tensor(DType::f32, {n}).as<float>();
  float* c = memory.tensor(DType::f32, {n}).as<float>();
  const double apart = best_seconds(0.4, [&] {
    parallel_ranges(n, piece, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) c[i] = a[i] + 3.0f * b[i];
    });
  });
  const double in_place = best_seconds(0.4, [&] {
    parallel_ranges(n, piece, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) a[i] += 3.0f * b[i];
    });
  });
  return 3.0 * n * sizeof(float) / std::min(apart, in_place);
}

double measure_read_bandwidth() {
  constexpr int64_t n = 128 << 20, piece = 1 << 14;  // of 64-bit words: 1 GiB, in pieces of 128 KiB
  constexpr int64_t kAhead =
      512;  // fetched ahead of what is read: a processor's own foresight ends with a page
  Arena memory(n * sizeof(int64_t));
  const int64_t* words = memory.tensor(DType::i64, {n}).as<int64_t>();
  std::vector<int64_t> sums(n / piece);  // kept, so that the reading is not left out
  const double seconds = best_seconds(1.0, [&] {
    parallel_ranges(n, piece, [&](int64_t begin, int64_t end) {
      int64_t sum = 0;
      for (int64_t line = begin; line < end; line += 8) {
        __builtin_prefetch(words + line + kAhead);
        for (int64_t i = line; i < line + 8; ++i) sum ^= words[i];
      }
      sums[static_cast<size_t>(begin / piece)] = sum;
    });
  });
  ZAYA_REQUIRE(std::count(sums.begin(), sums.end(), 0) == static_cast<int64_t>(sums.size()));
  return n * sizeof(int64_t) / seconds;
}

}  // namespace zaya
