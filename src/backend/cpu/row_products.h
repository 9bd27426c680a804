#pragma once
// Products of a few rows with weights that are read from memory once, a row of the weight at a
// time: what decoding does, at the speed of memory.

#include <span>

#include "core/weight.h"

namespace zaya {

// y [T, N] = x [T, K] W^T, W [N, K]. x and y: f32 or bf16; rows may be strided.
//   plain W: x widened to f32, sums in f32 in an order that depends on K alone.
//   codes: each group of 32 of x rounded to integers from -127 to 127 with a scale of its own, the
//   products within a group summed exactly, groups in f32.
// A row's bits depend on that row and W alone: not on the rows beside it, nor on the threads.
struct RowProduct {
  Tensor y;
  Tensor x;
  Weight weight;
};

// Products that do not read each other's outputs, in one parallel loop.
void row_products(std::span<const RowProduct> products);

}  // namespace zaya
