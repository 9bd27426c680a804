#pragma once
// The speed of generating one text with random weights, beside what memory bandwidth allows, and of
// its prompt, beside the peak of matrix products; ceilings measured in the same run.

#include <array>
#include <optional>

#include "core/weight.h"
#include "plan/gemm_bench.h"

namespace zaya {

struct DecodeBenchOptions {
  ModelConfig model;
  WeightFormat weights = WeightFormat::bf16;
  DType compute = DType::bf16;  // of activations and caches
  int64_t prompt_tokens = 512;
  int64_t new_tokens = 32;
};

struct DecodeSpeed {
  int64_t weight_bytes = 0;  // of the whole model
  int64_t active_bytes = 0;  // of them, what one token reads
  int64_t cache_bytes = 0;   // keys and values that a token reads, in the middle of the run
  int64_t head_bytes = 0;    // of the active ones
  double step_seconds = 0;   // the median token
  double fastest_seconds = 0, slowest_seconds = 0;
  std::array<double, kOpGroups> groups{};  // seconds of the median token, by group of ops
  double prompt_seconds = 0;               // the faster of two times through
  double prompt_flops = 0;
  DType multiplied = DType::f32;
  double peak_flops = 0;      // a second, of products in that format
  double read_bandwidth = 0;  // bytes a second
  int64_t peak_bytes = 0;     // 0 where the system does not say

  double tokens_per_second() const { return 1 / step_seconds; }
  // The share of the time that reading its bytes once would take.
  double roofline_fraction() const {
    return static_cast<double>(active_bytes + cache_bytes) / read_bandwidth / step_seconds;
  }
  double prefill_utilisation() const { return prompt_flops / prompt_seconds / peak_flops; }
};

// Bytes that measure_decode takes with these options, beside what the process holds before.
int64_t predicted_decode_bytes(const DecodeBenchOptions& options);

// The most blocks, up to the model's own, with which a run fits in `bytes`; 0 when none does.
int64_t blocks_that_fit(DecodeBenchOptions options, int64_t bytes);

DecodeSpeed measure_decode(const DecodeBenchOptions& options, const BenchProgress& progress);

}  // namespace zaya
