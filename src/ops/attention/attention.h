#pragma once
// Grouped-query causal attention over ragged sequences, with an optional sliding window.
//   o[t, j] = sum_u softmax_u(scale * q[t, j] . k[u, j / G]) v[u, j / G],   u visible to t
// Softmax in fp32 by blocks with a running maximum (online softmax): the T x T scores are never
// stored. nq query heads, nk key heads, G = nq / nk, d channels a head.

#include <cstdint>
#include <span>

#include "backend/context.h"
#include "core/tensor.h"

namespace zaya {

// Query rows [q_begin, q_begin + q_length) of one sequence and the key rows they may see. The last
// query sits at the last key: query i sees keys [.., k_length - q_length + i]. k_length is at least
// q_length and at most 2^24; either may be 0.
struct AttentionSpan {
  int64_t q_begin = 0;
  int64_t q_length = 0;
  int64_t k_begin = 0;
  int64_t k_length = 0;
};

struct AttentionShape {
  int64_t query_heads = 0;
  int64_t key_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  // a query sees itself and the window - 1 keys before it; 0: all before it
  float scale = 1.0f;
};

// o [Tq, nq * d], q [Tq, nq * d], k and v [Tk, nk * d]: one format, f32 or bf16.
// lse [Tq, nq] f32: saved, log sum exp of the scaled scores; null data when not wanted. Rows that
// no span holds are left alone. A query's bits depend on its own span alone, and not on its
// q_length: one token behind n keys gives the bits of the full forward (with ctx.rows together; for
// rows apart there is another way, attention_rows.h, which rounds differently).
// Unseen keys are multiplied by zero: a NaN or infinity in a later token of the same sequence may
// reach queries shortly before it (never another sequence).
void attention_forward(Context& ctx, const Tensor& o, const Tensor& lse, const Tensor& q,
                       const Tensor& k, const Tensor& v, std::span<const AttentionSpan> spans,
                       const AttentionShape& shape);

// dq, dk, dv: overwritten. All of one format (f32 or bf16) but lse. Scores are computed again.
// Spans come in row order and share no rows: a row of a gradient has one writer. Rows that no span
// holds and keys that no query sees get zero.
void attention_backward(Context& ctx, const Tensor& dq, const Tensor& dk, const Tensor& dv,
                        const Tensor& d_o, const Tensor& o, const Tensor& lse, const Tensor& q,
                        const Tensor& k, const Tensor& v, std::span<const AttentionSpan> spans,
                        const AttentionShape& shape);

}  // namespace zaya
