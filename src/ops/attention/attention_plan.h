#pragma once
// How attention is cut into blocks: plain arithmetic, shared by forward and backward.

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/error.h"
#include "core/tensor.h"
#include "ops/attention/attention.h"

namespace zaya {

// Keys of a block. Blocks are aligned to the sequence's first key: a query adds up its blocks in
// the same order whether it is decoded alone or computed with its whole sequence.
inline constexpr int64_t kKeyBlock = 64;

// Lanes (queries times heads) of a query block: enough to use a block of keys many times once it is
// copied, few enough for a thread's cache. Neither changes a bit of the results.
inline constexpr int64_t kForwardLanes = 256;
inline constexpr int64_t kBackwardLanes = 128;

// Key positions are compared as floats, lane by lane.
inline constexpr int64_t kMaxKeys = int64_t{1} << 24;

struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin >= end; }
  bool contains(const KeyRange& other) const { return begin <= other.begin && other.end <= end; }
};

inline KeyRange intersect(const KeyRange& a, const KeyRange& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// Queries [begin, end) of a span under one key head; lane m is query begin + m / G, head m % G.
struct QueryBlock {
  AttentionSpan span;
  int64_t key_head = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t heads = 1;  // G
  int64_t window = 0;

  int64_t lanes() const { return (end - begin) * heads; }
  // Row of q and o, and the head in it.
  int64_t row_of_lane(int64_t m) const { return span.q_begin + begin + m / heads; }
  int64_t head_of_lane(int64_t m) const { return key_head * heads + m % heads; }
  KeyRange keys_of_lane(int64_t m) const {
    const int64_t seen = span.k_length - span.q_length + begin + m / heads + 1;
    return {window > 0 ? std::max<int64_t>(0, seen - window) : 0, seen};
  }
  // Keys that some lane sees.
  KeyRange keys() const { return {keys_of_lane(0).begin, keys_of_lane(lanes() - 1).end}; }
};

// Queries to a block, for about `lanes` lanes.
inline int64_t queries_per_block(int64_t lanes, const AttentionShape& shape) {
  return std::max<int64_t>(1, lanes * shape.key_heads / shape.query_heads);
}

// f(keys) for each block of kKeyBlock keys that holds some of `range`, from the oldest.
template <class F>
void for_each_key_block(const KeyRange& range, int64_t k_length, F&& f) {
  for (int64_t begin = range.begin / kKeyBlock * kKeyBlock; begin < range.end; begin += kKeyBlock)
    f(KeyRange{begin, std::min(begin + kKeyBlock, k_length)});
}

// The tensors of one attention_backward.
struct AttentionGradients {
  Tensor dq, dk, dv, d_o, o, lse, q, k, v;
};

inline void require_attention_shapes(const Tensor& q, const Tensor& k, const Tensor& v,
                                     std::span<const AttentionSpan> spans,
                                     const AttentionShape& shape) {
  const int64_t nq = shape.query_heads, nk = shape.key_heads, d = shape.head_dim;
  ZAYA_REQUIRE(nk > 0 && nq > 0 && nq % nk == 0 && d > 0 && shape.window >= 0);
  ZAYA_REQUIRE(q.columns() == nq * d && k.columns() == nk * d && v.columns() == nk * d);
  ZAYA_REQUIRE(k.dtype == q.dtype && v.dtype == q.dtype && k.rows() == v.rows());
  for (const AttentionSpan& s : spans) {
    ZAYA_REQUIRE(0 <= s.q_begin && 0 <= s.q_length && s.q_begin + s.q_length <= q.rows());
    ZAYA_REQUIRE(0 <= s.k_begin && 0 <= s.k_length && s.k_begin + s.k_length <= k.rows());
    ZAYA_REQUIRE(s.q_length <= s.k_length && s.k_length <= kMaxKeys);
  }
}

}  // namespace zaya
