#pragma once
// From CCA's convolution output to the queries and keys of attention (zaya1.md section 2):
//   mean path   mq[j] = (q0[j] + k0[j / G]) / 2,   mk[g] = mean over its G heads j of mq[j]
//   add         q = z_q + mq,                      k = z_k + mk
//   normalise   q *= sqrt(d) / max(|q|, eps),      k *= sqrt(d) / max(|k|, eps) * temp[g]
//               for each head
//   rotate      the first `rotary` of each head's d channels, halves paired (i, i + rotary / 2)
// T tokens, nq query and nk key heads of d channels, G = nq / nk, C = (nq + nk) * d; all in fp32.

#include <cstdint>

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

struct QkShape {
  int64_t query_heads = 0;
  int64_t key_heads = 0;
  int64_t head_dim = 0;
  int64_t rotary = 0;  // channels of a head that rotate; even, at most head_dim; may be 0
};

// The smallest norm a head is divided by.
inline constexpr float kQkNormEps = 1e-6f;

// cos and sin [positions, rotary / 2] f32 of position * base^(-2 i / rotary), computed in double.
void rotary_tables(const Tensor& cos, const Tensor& sin, double base);

// q [T, nq * d] and k [T, nk * d]: f32 or bf16 (rows may be strided).
// z [T, C] f32: the grouped convolution's output, query channels first.   qk0 [T, C] f32 or bf16:
// concat(q0, k0).   temp [nk] f32.   positions [T] i32: row of the tables for each token.
void qk_norm_rope_forward(Context& ctx, const Tensor& q, const Tensor& k, const Tensor& z,
                          const Tensor& qk0, const Tensor& temp, const Tensor& cos,
                          const Tensor& sin, const Tensor& positions, const QkShape& shape);

// dz [T, C] f32: overwritten.   dqk0 [T, C] f32: overwritten (the mean path's share; the
// convolution's share is added by the caller).   dtemp [nk] f32: adds.   dq, dk f32 or bf16.
void qk_norm_rope_backward(Context& ctx, const Tensor& dz, const Tensor& dqk0, const Tensor& dtemp,
                           const Tensor& dq, const Tensor& dk, const Tensor& z, const Tensor& qk0,
                           const Tensor& temp, const Tensor& cos, const Tensor& sin,
                           const Tensor& positions, const QkShape& shape);

}  // namespace zaya
