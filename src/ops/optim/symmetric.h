#pragma once
// Symmetric products, of which half is computed and then mirrored. All matrices contiguous, and f32
// where nothing else is said. Results are the same for any number of threads, and inside a parallel
// loop.

#include "core/tensor.h"

namespace zaya {

// c [S, S] = x x' (x [S, K]), or x' x (x [K, S]) when tall.
void gram_product(const Tensor& c, const Tensor& x, bool tall);

// c = a b, all [S, S] and symmetric: a and b have to commute (polynomials of one matrix do).
void commuting_product(const Tensor& c, const Tensor& a, const Tensor& b);

// c = a I + b g + c g g, with g [S, S] symmetric.
struct Quadratic {
  float a, b, c;
};
void quadratic(const Tensor& c, const Tensor& g, const Quadratic& coefficients);

// p [S, S] bf16 = b g + c g g with g = x x' (x' x when tall), x bf16. g is rounded where it is
// multiplied by itself, and p in the end; all sums are f32. sums [S, S]: overwritten.
void gram_polynomial(const Tensor& p, const Tensor& sums, const Tensor& x, bool tall, float b,
                     float c);

}  // namespace zaya
