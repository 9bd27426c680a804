#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/scalar.h"

namespace zaya::reference {

// Query head `head` of query i of the span. Writes o[0, d) and returns log sum exp.
template <class S>
S attention_row(S* o, const S* q, const S* k, const S* v, const AttentionSpan& span, int64_t i,
                int64_t head, const AttentionShape& shape) {
  const int64_t d = shape.head_dim, group = head / (shape.query_heads / shape.key_heads);
  const int64_t end = span.k_length - span.q_length + i + 1;
  const int64_t begin = shape.window > 0 ? std::max<int64_t>(0, end - shape.window) : 0;
  const S* q_row = q + ((span.q_begin + i) * shape.query_heads + head) * d;
  std::vector<S> score(end - begin);
  double max = -INFINITY;
  for (int64_t u = begin; u < end; ++u) {
    const S* k_row = k + ((span.k_begin + u) * shape.key_heads + group) * d;
    S dot = 0;
    for (int64_t c = 0; c < d; ++c) dot += q_row[c] * k_row[c];
    score[u - begin] = dot * double(shape.scale);
    max = std::max(max, real(score[u - begin]));
  }
  S sum = 0;
  for (S& s : score) sum += s = std::exp(s - max);
  std::fill(o, o + d, S(0));
  for (int64_t u = begin; u < end; ++u) {
    const S* v_row = v + ((span.k_begin + u) * shape.key_heads + group) * d;
    for (int64_t c = 0; c < d; ++c) o[c] += score[u - begin] / sum * v_row[c];
  }
  return max + std::log(sum);
}

// See attention.h. lse may be null.
template <class S>
void attention(S* o, S* lse, const S* q, const S* k, const S* v,
               std::span<const AttentionSpan> spans, const AttentionShape& shape) {
  for (const AttentionSpan& span : spans) {
    for (int64_t i = 0; i < span.q_length; ++i) {
      for (int64_t head = 0; head < shape.query_heads; ++head) {
        const int64_t row = (span.q_begin + i) * shape.query_heads + head;
        const S value = attention_row(o + row * shape.head_dim, q, k, v, span, i, head, shape);
        if (lse != nullptr) lse[row] = value;
      }
    }
  }
}

}  // namespace zaya::reference
