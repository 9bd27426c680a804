// G query heads a key head, d channels a head. A piece is one query's share of the keys under one
// key head.

#include <cmath>
#include <type_traits>

#include "backend/cpu/threads.h"
#include "ops/attention/attention_plan.h"
#include "ops/attention/attention_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_rows_cpu.cpp"
#include <hwy/foreach_target.h>

#include "ops/attention/attention_kernels-inl.h"

#ifndef ZAYA_ATTENTION_PIECE_
#define ZAYA_ATTENTION_PIECE_
namespace zaya {

inline constexpr int64_t kPieceKeys = 256;

struct AttentionPiece {
  int64_t query = 0;  // row of q
  int64_t key_head = 0;
  KeyRange keys;  // rows of k and v
};

// What a piece leaves, per query head: maximum, sum of e^(score - maximum), and the values weighted
// by it. G * (2 + d) floats.
struct PartialSums {
  float* maximum;
  float* sum;
  float* values;  // [G, d]
};
inline int64_t partial_size(int64_t heads, int64_t d) { return heads * (2 + d); }
inline PartialSums partial_at(float* memory, int64_t heads) {
  return {memory, memory + heads, memory + 2 * heads};
}

}  // namespace zaya
#endif

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// Heads whose sums are built side by side, each in a register of its own.
constexpr int64_t kHeads = 4;

// f(std::integral_constant<int, H>(), h) for heads h to h + H - 1, H being kHeads or 1.
template <class F>
HWY_INLINE void for_head_groups(int64_t heads, F&& f) {
  int64_t h = 0;
  for (; h + kHeads <= heads; h += kHeads) f(std::integral_constant<int, kHeads>(), h);
  for (; h < heads; ++h) f(std::integral_constant<int, 1>(), h);
}

// scores[h * stride] = sum of q[h d + i] key[i], for H heads.
template <int H, class T>
HWY_INLINE void dot_heads(float* scores, int64_t stride, const float* q, const T* key, int64_t d) {
  const FullTag tag;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(tag));
  hn::Vec<FullTag> sums[H];
  float rest[H] = {};
  for (auto& sum : sums) sum = hn::Zero(tag);
  int64_t i = 0;
  for (; i + lanes <= d; i += lanes) {
    const auto x = load(tag, key + i);
    for (int h = 0; h < H; ++h) sums[h] = hn::MulAdd(load(tag, q + h * d + i), x, sums[h]);
  }
  for (; i < d; ++i)
    for (int h = 0; h < H; ++h) rest[h] += q[h * d + i] * static_cast<float>(key[i]);
  for (int h = 0; h < H; ++h)
    scores[h * stride] = hn::GetLane(hn::SumOfLanes(tag, sums[h])) + rest[h];
}

// values[h d + c] = sum over keys of weights[h, u] v[u, c], for H heads and one vector of channels.
template <int H, class D, class T>
HWY_INLINE void weigh_values(D tag, float* values, const float* weights, const T* v, int64_t stride,
                             int64_t n, int64_t d) {
  hn::Vec<D> sums[H];
  for (auto& sum : sums) sum = hn::Zero(tag);
  for (int64_t u = 0; u < n; ++u) {
    const auto x = load(tag, v + u * stride);
    for (int h = 0; h < H; ++h)
      sums[h] = hn::MulAdd(hn::Set(tag, weights[h * kPieceKeys + u]), x, sums[h]);
  }
  for (int h = 0; h < H; ++h) store(sums[h], tag, values + h * d);
}

// scores [n] become e^(score - maximum); returns their sum.
HWY_INLINE float exponentials(float* scores, float maximum, int64_t n) {
  const FullTag d;
  alignas(64) float padded[HWY_LANES(float)];
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const size_t count = static_cast<size_t>(std::min(lanes, n - i));
    std::fill_n(padded, lanes, maximum);
    std::memcpy(padded, scores + i, count * sizeof(float));
    hn::Store(exp_keeping_nan(d, hn::Sub(hn::Load(d, padded), hn::Set(d, maximum))), d, padded);
    std::memcpy(scores + i, padded, count * sizeof(float));
  }
  return reduce_sum(n, [&](auto tag, int64_t i) { return load(tag, scores + i); });
}

// Keys fetched ahead of the one at work. Values are fetched with the keys, which are read first.
constexpr int64_t kAhead = 16;
template <class T>
HWY_INLINE void fetch(const T* row, int64_t n) {
  const auto* bytes = reinterpret_cast<const char*>(row);
  for (int64_t i = 0; i < n * static_cast<int64_t>(sizeof(T)); i += 64)
    __builtin_prefetch(bytes + i, 0, 2);
}

template <class T>
void attend_piece(const PartialSums& to, const Tensor& q, const Tensor& k, const Tensor& v,
                  const AttentionPiece& piece, int64_t heads, int64_t d, float scale) {
  struct Queries;
  struct Scores;
  const int64_t n = piece.keys.end - piece.keys.begin, column = piece.key_head * d;
  float* queries = thread_buffer<Queries, float>(heads * d);
  const T* query = q.row<T>(piece.query) + piece.key_head * heads * d;
  for_each_vector(heads * d, [&](auto tag, int64_t i) {
    store(hn::Mul(load(tag, query + i), hn::Set(tag, scale)), tag, queries + i);
  });
  float* scores = thread_buffer<Scores, float>(heads * kPieceKeys);
  for (int64_t u = 0; u < n; ++u) {
    const T* key = k.row<T>(piece.keys.begin + u) + column;
    fetch(key + kAhead * k.row_stride, d);
    fetch(v.row<T>(piece.keys.begin + u) + column, d);
    for_head_groups(heads, [&](auto group, int64_t h) {
      dot_heads<group()>(scores + h * kPieceKeys + u, kPieceKeys, queries + h * d, key, d);
    });
  }
  for (int64_t h = 0; h < heads; ++h) {
    float* own = scores + h * kPieceKeys;
    to.maximum[h] = *std::max_element(own, own + n);
    to.sum[h] = exponentials(own, to.maximum[h], n);
  }
  const T* rows = v.row<T>(piece.keys.begin) + column;
  for_each_vector(d, [&](auto tag, int64_t c) {
    for_head_groups(heads, [&](auto group, int64_t h) {
      weigh_values<group()>(tag, to.values + h * d + c, scores + h * kPieceKeys, rows + c,
                            v.row_stride, n, d);
    });
  });
}

void attend_any(const PartialSums& to, const Tensor& q, const Tensor& k, const Tensor& v,
                const AttentionPiece& piece, int64_t heads, int64_t d, float scale) {
  visit_activation(q.dtype,
                   [&]<class T>() { attend_piece<T>(to, q, k, v, piece, heads, d, scale); });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(attend_any);

// The pieces of query i of a span under one key head, in key order.
template <class F>
void for_each_piece(const AttentionSpan& span, int64_t i, int64_t key_head, int64_t window, F&& f) {
  const int64_t end = span.k_length - span.q_length + i + 1;
  const int64_t begin = window > 0 ? std::max<int64_t>(0, end - window) : 0;
  for (int64_t u = begin; u < end; u += kPieceKeys)
    f(AttentionPiece{span.q_begin + i,
                     key_head,
                     {span.k_begin + u, span.k_begin + std::min(u + kPieceKeys, end)}});
}

// Output and log sum exp of head h from the pieces [begin, end) of its query.
template <class T>
void combine(T* o, float* lse, float* partials, int64_t begin, int64_t end, int64_t h,
             int64_t heads, int64_t d) {
  const int64_t size = partial_size(heads, d);
  const auto part = [&](int64_t p) { return partial_at(partials + p * size, heads); };
  float maximum = part(begin).maximum[h];
  for (int64_t p = begin + 1; p < end; ++p) maximum = std::max(maximum, part(p).maximum[h]);
  float sum = 0;
  for (int64_t p = begin; p < end; ++p)
    sum += part(p).sum[h] * std::exp(part(p).maximum[h] - maximum);
  for (int64_t c = 0; c < d; ++c) {
    float value = 0;
    for (int64_t p = begin; p < end; ++p)
      value += part(p).values[h * d + c] * std::exp(part(p).maximum[h] - maximum);
    o[h * d + c] = T(value / sum);
  }
  if (lse) lse[h] = maximum + std::log(sum);
}

}  // namespace

void attention_rows_forward(const Tensor& o, const Tensor& lse, const Tensor& q, const Tensor& k,
                            const Tensor& v, std::span<const AttentionSpan> spans,
                            const AttentionShape& shape) {
  struct Pieces;
  struct Partials;
  const int64_t heads = shape.query_heads / shape.key_heads, d = shape.head_dim;
  const auto for_all = [&](auto&& f) {
    for (const AttentionSpan& span : spans)
      for (int64_t i = 0; i < span.q_length; ++i)
        for (int64_t g = 0; g < shape.key_heads; ++g) for_each_piece(span, i, g, shape.window, f);
  };
  int64_t count = 0;
  for_all([&](const AttentionPiece&) { ++count; });
  AttentionPiece* pieces = thread_buffer<Pieces, AttentionPiece>(count);
  for_all([next = pieces](const AttentionPiece& piece) mutable { *next++ = piece; });
  float* partials = thread_buffer<Partials, float>(count * partial_size(heads, d));
  parallel_for(count, [&](int64_t p) {
    HWY_DYNAMIC_DISPATCH(attend_any)
    (partial_at(partials + p * partial_size(heads, d), heads), q, k, v, pieces[p], heads, d,
     shape.scale);
  });
  for (int64_t begin = 0, end; begin < count; begin = end) {
    const AttentionPiece& first = pieces[begin];
    for (end = begin + 1;
         end < count && pieces[end].query == first.query && pieces[end].key_head == first.key_head;)
      ++end;
    visit_activation(o.dtype, [&]<class T>() {
      const int64_t head = first.key_head * heads;
      float* sums = lse ? lse.row<float>(first.query) + head : nullptr;
      for (int64_t h = 0; h < heads; ++h)
        combine(o.row<T>(first.query) + head * d, sums, partials, begin, end, h, heads, d);
    });
  }
}

}  // namespace zaya
#endif
