#include <cstring>
#include <utility>

#include "backend/cpu/threads.h"
#include "core/ceil_div.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_backward_cpu.cpp"
#include <hwy/foreach_target.h>

#include "ops/attention/attention_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// W is a panel's width; D is d rounded up to whole panels; lanes are rounded up to whole panels.
struct Scratch {
  int64_t D = 0, lanes = 0;
  float* dk = nullptr;       // [k_length, D], the whole span and room for its last block
  float* dv = nullptr;       // the same
  float* rows = nullptr;     // [lanes, D]
  float* q = nullptr;        // lane panels [d / kTerms][W]
  float* d_o = nullptr;      // lane panels [d / kTerms][W]
  float* dq = nullptr;       // lane panels [d][W]
  float* q_rows = nullptr;   // channel panels [lanes / kTerms][W]
  float* do_rows = nullptr;  // channel panels [lanes / kTerms][W]
  float* lse = nullptr;      // [lanes]
  float* delta = nullptr;    // [lanes], sum over channels of d_o * o
  float* begin = nullptr;    // [lanes], keys each lane sees
  float* end = nullptr;
  float* k = nullptr;         // [kKeyBlock, d / kTerms]
  float* v = nullptr;         // [kKeyBlock, d / kTerms]
  float* k_rows = nullptr;    // [kKeyBlock / kTerms, d], or turned (rows_along_rows)
  float* p = nullptr;         // lane panels [kKeyBlock][W / kTerms]
  float* ds = nullptr;        // lane panels [kKeyBlock][W / kTerms]
  float* work = nullptr;      // p, then ds, of one panel in f32 before they are joined to words
  PanelKeys* seen = nullptr;  // [panels]
};

Scratch make_scratch(int64_t k_length, int64_t block_lanes, int64_t d) {
  struct Tag;
  struct SeenTag;
  const int64_t W = panel_width();
  Scratch s;
  s.D = panels_for(d) * W;
  s.lanes = panels_for(block_lanes) * W;
  const int64_t keys = round_up(k_length, kKeyBlock);
  float* next = thread_buffer<Tag, float>(2 * keys * s.D + 3 * s.lanes * (s.D + d) + 4 * s.lanes +
                                          kKeyBlock * (3 * d + 2 * s.lanes + 2 * W));
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  for (float** x : {&s.dk, &s.dv}) *x = take(keys * s.D);
  for (float** x : {&s.rows, &s.q_rows, &s.do_rows}) *x = take(s.lanes * s.D);
  for (float** x : {&s.q, &s.d_o, &s.dq}) *x = take(s.lanes * d);
  for (float** x : {&s.lse, &s.delta, &s.begin, &s.end}) *x = take(s.lanes);
  for (float** x : {&s.p, &s.ds}) *x = take(s.lanes * kKeyBlock);
  for (float** x : {&s.k, &s.v, &s.k_rows}) *x = take(kKeyBlock * d);
  s.work = take(2 * kKeyBlock * W);
  s.seen = thread_buffer<SeenTag, PanelKeys>(s.lanes / W);
  return s;
}

// Lanes [lanes, D] as channel panels [lanes / kTerms][W].
template <class Kind>
void split_channels(float* to, const float* rows, int64_t lanes, int64_t D) {
  const int64_t W = panel_width();
  for (int64_t c = 0; c < D; c += W) {
    for (int64_t m = 0; m < lanes; ++m)
      std::memcpy(to + m * W, rows + m * D + c, W * sizeof(float));
    join_rows<Kind>(to, lanes, W);
    to += lanes / Kind::kTerms * W;
  }
}

// The block's lanes of x, in both layouts.
template <class Kind, class T>
void gather_lanes(float* panels, float* channels, const Scratch& s, const Tensor& x,
                  const QueryBlock& block, int64_t d) {
  for (int64_t m = 0; m < block.lanes(); ++m)
    widen_rows<T>(s.rows + m * s.D, s.D, x, block.row_of_lane(m), 1, block.head_of_lane(m) * d, d);
  std::fill(s.rows + block.lanes() * s.D, s.rows + s.lanes * s.D, 0.0f);
  transpose_to_panels(panels, s.rows, block.lanes(), s.D, d);
  for (int64_t p = 0; p < s.lanes / panel_width(); ++p) join_panel<Kind>(panels, p, d);
  split_channels<Kind>(channels, s.rows, s.lanes, s.D);
}

// lse and delta of each lane; lanes that do not exist get zeros, and so add zero to every gradient.
template <class T>
void gather_sums(const Scratch& s, const AttentionGradients& x, const QueryBlock& block,
                 int64_t d) {
  std::fill(s.lse, s.lse + s.lanes, 0.0f);
  std::fill(s.delta, s.delta + s.lanes, 0.0f);
  for (int64_t m = 0; m < block.lanes(); ++m) {
    const int64_t row = block.row_of_lane(m), head = block.head_of_lane(m);
    const T* o = x.o.row<T>(row) + head * d;
    const T* d_o = x.d_o.row<T>(row) + head * d;
    s.lse[m] = x.lse.row<float>(row)[head];
    s.delta[m] = reduce_sum(
        d, [&](auto tag, int64_t c) { return hn::Mul(load(tag, o + c), load(tag, d_o + c)); });
  }
}

template <class Kind, class T>
void begin_block(const Scratch& s, const AttentionGradients& x, const QueryBlock& block,
                 const AttentionShape& shape) {
  const int64_t W = panel_width(), d = shape.head_dim;
  gather_lanes<Kind, T>(s.q, s.q_rows, s, x.q, block, d);
  gather_lanes<Kind, T>(s.d_o, s.do_rows, s, x.d_o, block, d);
  gather_sums<T>(s, x, block, d);
  std::fill(s.dq, s.dq + s.lanes * d, 0.0f);
  for (int64_t m = 0; m < block.lanes(); m += W)
    s.seen[m / W] = panel_keys(s.begin + m, s.end + m, block, m);
}

// p = exp(scale * score - lse) and ds = scale * p * (dp - delta), where p holds scores and ds holds
// dp.
template <bool kMask>
void softmax_backward_panel(const Scratch& s, float* p, float* ds, int64_t lane, int64_t first_key,
                            int64_t count, float scale) {
  const FullTag d;
  const int64_t W = panel_width(), lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t half = 0; half < W; half += lanes) {
    const int64_t m = lane + half;
    const auto begin = hn::LoadU(d, s.begin + m), end = hn::LoadU(d, s.end + m);
    const auto lse = hn::LoadU(d, s.lse + m), delta = hn::LoadU(d, s.delta + m);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = k * W + half;
      const auto score = hn::Mul(hn::LoadU(d, p + at), hn::Set(d, scale));
      auto weight = exp_keeping_nan(d, hn::Sub(score, lse));
      if (kMask) {
        const auto key = hn::Set(d, static_cast<float>(first_key + k));
        weight = hn::IfThenElseZero(hn::And(hn::Ge(key, begin), hn::Lt(key, end)), weight);
      }
      hn::StoreU(weight, d, p + at);
      const auto change = hn::Mul(weight, hn::Sub(hn::LoadU(d, ds + at), delta));
      hn::StoreU(hn::Mul(change, hn::Set(d, scale)), d, ds + at);
    }
  }
}

// Rows [count][W] of f32 as words along the lanes, [count][W / 2].
void store_words_along_lanes(float* to, const float* from, int64_t count) {
  bf16* halves = reinterpret_cast<bf16*>(to);
  for_each_vector(count * panel_width(),
                  [&](auto d, int64_t i) { store(load(d, from + i), d, halves + i); });
}

// p, ds and dq of one panel; keys of the block that no lane sees get p = ds = 0.
template <class Kind>
void backward_panel(const Scratch& s, int64_t lane, const KeyRange& keys,
                    const AttentionShape& shape) {
  constexpr int64_t kTerms = Kind::kTerms;
  const int64_t W = panel_width(), d = shape.head_dim, channels = d / kTerms;
  const int64_t block = whole_units<Kind>(keys.end - keys.begin);
  float* p = kTerms == 1 ? s.p + lane * kKeyBlock : s.work;
  float* ds = kTerms == 1 ? s.ds + lane * kKeyBlock : s.work + kKeyBlock * W;
  const PanelKeys& seen = s.seen[lane / W];
  KeyRange range = intersect(keys, seen.any);
  range = range.empty() ? KeyRange{keys.begin, keys.begin} : whole_units<Kind>(range);
  const int64_t skip = range.begin - keys.begin, count = range.end - range.begin;
  float* some_p = p + skip * W;
  float* some_ds = ds + skip * W;
  panel_products<Kind>(some_p, s.k + skip * channels, s.q + lane * channels, count, d);
  panel_products<Kind>(some_ds, s.v + skip * channels, s.d_o + lane * channels, count, d);
  if (seen.all.contains(range)) {
    softmax_backward_panel<false>(s, some_p, some_ds, lane, range.begin, count, shape.scale);
  } else {
    softmax_backward_panel<true>(s, some_p, some_ds, lane, range.begin, count, shape.scale);
  }
  for (float* x : {p, ds}) {
    std::fill(x, x + skip * W, 0.0f);
    std::fill(x + (skip + count) * W, x + block * W, 0.0f);
  }
  if constexpr (kTerms == 2) {
    store_words_along_lanes(s.p + lane / 2 * kKeyBlock, p, block);
    store_words_along_lanes(s.ds + lane / 2 * kKeyBlock, ds, block);
  }
  weighted_sum_of_rows<Kind, Start::add>(s.dq + lane * d, s.k_rows, skip, some_ds, count, d);
}

// gradient [keys, D] += weights x rows, for rows of a few keys at a time over the panels that see
// them: weights in lane panels [kKeyBlock][W / kTerms], rows in channel panels [lanes / kTerms][W].
template <class Kind>
void add_key_gradient(float* gradient, const float* weights, const float* rows, const Scratch& s,
                      const KeyRange& keys) {
  const int64_t W = panel_width(), panels = s.lanes / W, steps = W / Kind::kTerms;
  constexpr int64_t kRows = kInTiles<Kind> ? Kind::kUnit : kTileRows;
  for (int64_t c = 0; c < s.D; c += W) {
    for (int64_t key = keys.begin; key < keys.end; key += kRows) {
      const KeyRange some{key, std::min(key + kRows, keys.end)};
      int64_t first = 0, last = panels;
      while (first < last && intersect(some, s.seen[first].any).empty()) ++first;
      while (first < last && intersect(some, s.seen[last - 1].any).empty()) --last;
      multiply<Kind, Start::add>({.c = gradient + key * s.D + c,
                                  .c_row = s.D,
                                  .a = weights + (first * kKeyBlock + key - keys.begin) * steps,
                                  .a_row = steps,
                                  .a_step = 1,
                                  .b = rows + (c / W * panels + first) * steps * W,
                                  .b_step = W,
                                  .steps = steps,
                                  .batches = last - first,
                                  .a_batch = kKeyBlock * steps,
                                  .b_batch = steps * W},
                                 some.end - some.begin);
    }
  }
}

template <class T>
void store_dq(const Scratch& s, const Tensor& dq, const QueryBlock& block,
              const AttentionShape& shape) {
  const int64_t W = panel_width(), d = shape.head_dim;
  for (int64_t lane = 0; lane < block.lanes(); lane += W) {
    const float* panel = s.dq + lane * d;
    for (int64_t m = 0; m < std::min(W, block.lanes() - lane); ++m)
      lane_to_row(dq.row<T>(block.row_of_lane(lane + m)) + block.head_of_lane(lane + m) * d, panel,
                  m, d);
  }
}

template <class T, class Kind>
void backward_block(const Scratch& s, const AttentionGradients& x, const QueryBlock& block,
                    const AttentionShape& shape) {
  const int64_t W = panel_width(), d = shape.head_dim;
  begin_block<Kind, T>(s, x, block, shape);
  [[maybe_unused]] const typename Kind::Registers registers;
  for_each_key_block(block.keys(), block.span.k_length, [&](const KeyRange& keys) {
    const int64_t row = block.span.k_begin + keys.begin, count = keys.end - keys.begin;
    rows_along_channels<Kind, T>(s.k, x.k, row, count, block.key_head * d, d);
    rows_along_channels<Kind, T>(s.v, x.v, row, count, block.key_head * d, d);
    rows_along_rows<Kind, T>(s.k_rows, x.k, row, count, block.key_head * d, d);
    for (int64_t lane = 0; lane < s.lanes; lane += W) backward_panel<Kind>(s, lane, keys, shape);
    add_key_gradient<Kind>(s.dv, s.p, s.do_rows, s, keys);
    add_key_gradient<Kind>(s.dk, s.ds, s.q_rows, s, keys);
  });
  store_dq<T>(s, x.dq, block, shape);
}

// One span under one key head: the only writer of its rows of dq, dk and dv.
template <class T, class Kind>
void backward_item(const AttentionGradients& x, const AttentionSpan& span, int64_t key_head,
                   const AttentionShape& shape) {
  const int64_t d = shape.head_dim, heads = shape.query_heads / shape.key_heads;
  const int64_t step = queries_per_block(kBackwardLanes, shape);
  Scratch s = make_scratch(span.k_length, std::min(step, span.q_length) * heads, d);
  std::fill(s.dk, s.dk + span.k_length * s.D, 0.0f);
  std::fill(s.dv, s.dv + span.k_length * s.D, 0.0f);
  for (int64_t i = 0; i < span.q_length; i += step) {
    const QueryBlock block{span,  key_head,    i, std::min(i + step, span.q_length),
                           heads, shape.window};
    s.lanes = panels_for(block.lanes()) * panel_width();
    backward_block<T, Kind>(s, x, block, shape);
  }
  for (int64_t r = 0; r < span.k_length; ++r) {
    T* dk = x.dk.row<T>(span.k_begin + r) + key_head * d;
    T* dv = x.dv.row<T>(span.k_begin + r) + key_head * d;
    for_each_vector(d, [&](auto tag, int64_t c) {
      store(load(tag, s.dk + r * s.D + c), tag, dk + c);
      store(load(tag, s.dv + r * s.D + c), tag, dv + c);
    });
  }
}

void backward_op(const AttentionGradients& x, std::span<const AttentionSpan> spans,
                 const AttentionShape& shape) {
  visit_products(x.q.dtype, shape.head_dim, [&]<class T, class Kind>() {
    parallel_for(static_cast<int64_t>(spans.size()) * shape.key_heads, [&](int64_t item) {
      backward_item<T, Kind>(x, spans[item / shape.key_heads], item % shape.key_heads, shape);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {

HWY_EXPORT(backward_op);

namespace {

void clear_rows(const Tensor& x, int64_t begin, int64_t end) {
  const size_t bytes = x.columns() * size_of(x.dtype);
  for (int64_t r = begin; r < end; ++r) std::memset(x.address(r), 0, bytes);
}

// Clears the rows that no span writes. Spans must come in order: rows of gradients have one writer.
void clear_gaps(const AttentionGradients& x, std::span<const AttentionSpan> spans) {
  int64_t q = 0, k = 0;
  for (const AttentionSpan& s : spans) {
    ZAYA_REQUIRE(s.q_begin >= q && s.k_begin >= k);
    clear_rows(x.dq, q, s.q_begin);
    for (const Tensor& gradient : {x.dk, x.dv}) clear_rows(gradient, k, s.k_begin);
    q = s.q_begin + s.q_length;
    k = s.k_begin + s.k_length;
  }
  clear_rows(x.dq, q, x.dq.rows());
  for (const Tensor& gradient : {x.dk, x.dv}) clear_rows(gradient, k, gradient.rows());
}

}  // namespace

void attention_backward(Context&, const Tensor& dq, const Tensor& dk, const Tensor& dv,
                        const Tensor& d_o, const Tensor& o, const Tensor& lse, const Tensor& q,
                        const Tensor& k, const Tensor& v, std::span<const AttentionSpan> spans,
                        const AttentionShape& shape) {
  require_attention_shapes(q, k, v, spans, shape);
  for (const Tensor& x : {dq, d_o, o})
    ZAYA_REQUIRE(x.dtype == q.dtype && x.columns() == q.columns() && x.rows() == q.rows());
  for (const Tensor& x : {dk, dv})
    ZAYA_REQUIRE(x.dtype == k.dtype && x.columns() == k.columns() && x.rows() == k.rows());
  ZAYA_REQUIRE(lse.columns() == shape.query_heads && lse.rows() == q.rows());
  const AttentionGradients gradients{dq, dk, dv, d_o, o, lse, q, k, v};
  clear_gaps(gradients, spans);
  HWY_DYNAMIC_DISPATCH(backward_op)(gradients, spans, shape);
}

}  // namespace zaya
#endif
