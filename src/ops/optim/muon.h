#pragma once
// Muon (Jordan 2024; Moonlight, arXiv 2502.16982) for one logical matrix [rows, columns]:
//   m = momentum * m + g;   u = g + momentum * m  (Nesterov), or m
//   O = newton_schulz(u)    w -= lr * (0.2 * sqrt(max(rows, columns)) * O + weight_decay * w)
// with g = gradient * gradient_scale. Newton-Schulz: X = u / |u|_F, then five times
// X = a X + b (X X^T) X + c (X X^T)^2 X with (a, b, c) = (3.4445, -4.7750, 2.0315), on the smaller
// side's Gram matrix. The singular values of O lie near 1.

#include <span>

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

struct MuonSettings {
  float learning_rate = 0;
  float momentum = 0.95f;
  bool nesterov = true;
  float weight_decay = 0.1f;
  float gradient_scale = 1;
  // What Newton-Schulz multiplies: f32, or bf16, which wants multiplies_bf16(). Its sums, its
  // result and all the rest are f32 either way.
  DType products = DType::f32;
};

struct MuonMatrix {
  Tensor weight;    // [rows, columns] f32
  Tensor momentum;  // the same
  Tensor gradient;  // the same
};

// Many matrices at once, whole matrices spread over the threads; each result is the same whatever
// the others are.
void muon_update(Context& ctx, std::span<const MuonMatrix> matrices, const MuonSettings& settings);

// out [rows, columns] f32 = newton_schulz(in), for tests and benchmarks. out may be in. products:
// as in MuonSettings.
void newton_schulz(Context& ctx, const Tensor& out, const Tensor& in, DType products = DType::f32);

}  // namespace zaya
