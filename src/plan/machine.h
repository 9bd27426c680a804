#pragma once
// What this machine does with the products of a model, measured, and how fast it reads and writes
// memory: the ceilings that speeds are held against. backend/cpu/gemm_peak.h is the third.

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "model/config.h"

namespace zaya {

// A product of training: M tokens, K inputs, N outputs.
struct ProductShape {
  std::string name;
  int64_t m = 0, n = 0, k = 0;
};

// The larger products of a batch of `tokens`; an expert gets its even share of them, and the head
// the rows it takes at a time.
std::vector<ProductShape> product_shapes(const ModelConfig& config, int64_t tokens);

// Operations a second of our own gemm on all threads, the best of a few calls.
struct ProductSpeed {
  double forward = 0;          // x W^T
  double input_gradient = 0;   // dy W
  double weight_gradient = 0;  // += dy^T x
};
ProductSpeed measure_product(const ProductShape& shape, DType dtype);

// Bytes a second of c = a + s b or of a += s b, whichever is faster, over arrays larger than the
// caches; reads and writes counted once.
double measure_memory_bandwidth();

// Bytes a second of reading alone, by all threads, from more memory than caches hold: what decoding
// can be at best.
double measure_read_bandwidth();

}  // namespace zaya
