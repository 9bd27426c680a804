#include <cmath>
#include <utility>

#include "backend/cpu/threads.h"
#include "core/ceil_div.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_plan.h"
#include "ops/attention/attention_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_forward_cpu.cpp"
#include <hwy/foreach_target.h>

#include "ops/attention/attention_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// Below every score, and above what stands for an unseen one: while a lane has seen nothing,
// exp(kUnseen - kNoMaximum) = 0, and its first real maximum wipes out nothing but zeros.
constexpr float kNoMaximum = -1e30f;
constexpr float kUnseen = -3e38f;

// What a query block keeps while it walks over the keys. W is a panel's width.
struct Scratch {
  float* rows = nullptr;     // [lanes, d]
  float* q = nullptr;        // panels [d / kTerms][W]
  float* o = nullptr;        // panels [d][W]
  float* maximum = nullptr;  // [lanes]
  float* sum = nullptr;      // [lanes]
  float* begin = nullptr;    // [lanes], keys each lane sees
  float* end = nullptr;
  float* k = nullptr;        // [kKeyBlock, d / kTerms]
  float* v = nullptr;        // [kKeyBlock / kTerms, d], or turned (rows_along_rows)
  float* scores = nullptr;   // [kKeyBlock, W]
  float* rescale = nullptr;  // [W]
};

Scratch make_scratch(int64_t panels, int64_t d) {
  struct Tag;
  const int64_t W = panel_width(), lanes = panels * W;
  float* next = thread_buffer<Tag, float>(3 * lanes * d + 4 * lanes + kKeyBlock * (2 * d + W) + W);
  const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
  Scratch s;
  s.scores = take(kKeyBlock * W);
  s.rescale = take(W);
  s.q = take(lanes * d);
  s.o = take(lanes * d);
  s.maximum = take(lanes);
  s.sum = take(lanes);
  s.begin = take(lanes);
  s.end = take(lanes);
  s.k = take(kKeyBlock * d);
  s.v = take(kKeyBlock * d);
  s.rows = take(lanes * d);
  return s;
}

// Scores of keys [0, count) become exp(scale * score - maximum), and the running maximum and sum of
// the panel move on. first_key is the position of key 0.
template <bool kMask>
void softmax_panel(const Scratch& s, float* scores, int64_t lane, int64_t first_key, int64_t count,
                   float scale) {
  const FullTag d;
  const int64_t W = panel_width(), lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t half = 0; half < W; half += lanes) {
    const int64_t m = lane + half;
    const auto before = hn::LoadU(d, s.maximum + m);
    const auto begin = hn::LoadU(d, s.begin + m), end = hn::LoadU(d, s.end + m);
    auto maximum = before;
    for (int64_t k = 0; k < count; ++k) {
      auto score = hn::Mul(hn::LoadU(d, scores + k * W + half), hn::Set(d, scale));
      if (kMask) {
        const auto key = hn::Set(d, static_cast<float>(first_key + k));
        const auto seen = hn::And(hn::Ge(key, begin), hn::Lt(key, end));
        score = hn::IfThenElse(seen, score, hn::Set(d, kUnseen));
      }
      hn::StoreU(score, d, scores + k * W + half);
      maximum = hn::Max(score, maximum);
    }
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < count; ++k) {
      const auto score = hn::LoadU(d, scores + k * W + half);
      const auto p = exp_keeping_nan(d, hn::Sub(score, maximum));
      sum = hn::Add(sum, p);
      hn::StoreU(p, d, scores + k * W + half);
    }
    const auto rescale = exp_keeping_nan(d, hn::Sub(before, maximum));
    hn::StoreU(rescale, d, s.rescale + half);
    hn::StoreU(maximum, d, s.maximum + m);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, s.sum + m), rescale, sum), d, s.sum + m);
  }
}

// One panel and the keys `range` of the block that starts at key block_begin.
template <class Kind>
void attend(const Scratch& s, int64_t lane, const KeyRange& range, int64_t block_begin, bool mask,
            const AttentionShape& shape) {
  const int64_t W = panel_width(), d = shape.head_dim, count = range.end - range.begin;
  const int64_t skip = range.begin - block_begin, channels = d / Kind::kTerms;
  panel_products<Kind>(s.scores, s.k + skip * channels, s.q + lane * channels, count, d);
  if (mask) {
    softmax_panel<true>(s, s.scores, lane, range.begin, count, shape.scale);
  } else {
    softmax_panel<false>(s, s.scores, lane, range.begin, count, shape.scale);
  }
  std::fill(s.scores + count * W, s.scores + whole_units<Kind>(count) * W, 0.0f);
  weighted_sum_of_rows<Kind, Start::scale>(s.o + lane * d, s.v, skip, s.scores, count, d,
                                           s.rescale);
}

// Queries of the block as panels; running values at their start.
template <class Kind, class T>
void begin_block(const Scratch& s, const Tensor& q, const QueryBlock& block,
                 const AttentionShape& shape, int64_t panels) {
  const int64_t W = panel_width(), d = shape.head_dim, G = block.heads;
  for (int64_t i = 0; i < block.end - block.begin; ++i)
    widen_rows<T>(s.rows + i * G * d, G * d, q, block.row_of_lane(i * G), 1, block.key_head * G * d,
                  G * d);
  transpose_to_panels(s.q, s.rows, block.lanes(), d, d);
  for (int64_t p = 0; p < panels; ++p) join_panel<Kind>(s.q, p, d);
  std::fill(s.o, s.o + panels * W * d, 0.0f);
  std::fill(s.sum, s.sum + panels * W, 0.0f);
  std::fill(s.maximum, s.maximum + panels * W, kNoMaximum);
}

template <class T>
void end_block(const Scratch& s, const Tensor& o, const Tensor& lse, const QueryBlock& block,
               const AttentionShape& shape) {
  const int64_t W = panel_width(), d = shape.head_dim;
  for (int64_t lane = 0; lane < block.lanes(); lane += W) {
    float* panel = s.o + lane * d;
    for (int64_t c = 0; c < d; ++c)
      for_each_vector(W, [&](auto v, int64_t m) {
        store(hn::Div(load(v, panel + c * W + m), load(v, s.sum + lane + m)), v, panel + c * W + m);
      });
    for (int64_t m = 0; m < std::min(W, block.lanes() - lane); ++m) {
      const int64_t row = block.row_of_lane(lane + m), head = block.head_of_lane(lane + m);
      lane_to_row(o.row<T>(row) + head * d, panel, m, d);
      if (lse) lse.row<float>(row)[head] = s.maximum[lane + m] + std::log(s.sum[lane + m]);
    }
  }
}

template <class T, class Kind>
void forward_block(const Tensor& o, const Tensor& lse, const Tensor& q, const Tensor& k,
                   const Tensor& v, const QueryBlock& block, const AttentionShape& shape) {
  const int64_t W = panel_width(), d = shape.head_dim, panels = panels_for(block.lanes());
  const Scratch s = make_scratch(panels, d);
  begin_block<Kind, T>(s, q, block, shape, panels);
  [[maybe_unused]] const typename Kind::Registers registers;
  struct Tag;
  PanelKeys* seen = thread_buffer<Tag, PanelKeys>(panels);
  for (int64_t p = 0; p < panels; ++p)
    seen[p] = panel_keys(s.begin + p * W, s.end + p * W, block, p * W);
  for_each_key_block(block.keys(), block.span.k_length, [&](const KeyRange& keys) {
    const int64_t row = block.span.k_begin + keys.begin, count = keys.end - keys.begin;
    rows_along_channels<Kind, T>(s.k, k, row, count, block.key_head * d, d);
    rows_along_rows<Kind, T>(s.v, v, row, count, block.key_head * d, d);
    for (int64_t p = 0; p < panels; ++p) {
      if (intersect(keys, seen[p].any).empty()) continue;
      const KeyRange range = whole_units<Kind>(intersect(keys, seen[p].any));
      attend<Kind>(s, p * W, range, keys.begin, !seen[p].all.contains(range), shape);
    }
  });
  end_block<T>(s, o, lse, block, shape);
}

void forward_op(const Tensor& o, const Tensor& lse, const Tensor& q, const Tensor& k,
                const Tensor& v, std::span<const QueryBlock> blocks, const AttentionShape& shape) {
  visit_products(q.dtype, shape.head_dim, [&]<class T, class Kind>() {
    parallel_for(static_cast<int64_t>(blocks.size()),
                 [&](int64_t i) { forward_block<T, Kind>(o, lse, q, k, v, blocks[i], shape); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {

HWY_EXPORT(forward_op);

namespace {

// Every query block of every span and key head.
std::span<const QueryBlock> plan_blocks(std::span<const AttentionSpan> spans,
                                        const AttentionShape& shape) {
  struct Tag;
  const int64_t step = queries_per_block(kForwardLanes, shape);
  const int64_t heads = shape.query_heads / shape.key_heads;
  int64_t count = 0;
  for (const AttentionSpan& s : spans) count += ceil_div(s.q_length, step) * shape.key_heads;
  QueryBlock* blocks = thread_buffer<Tag, QueryBlock>(count);
  QueryBlock* next = blocks;
  for (const AttentionSpan& s : spans)
    for (int64_t g = 0; g < shape.key_heads; ++g)
      for (int64_t i = 0; i < s.q_length; i += step)
        *next++ = {s, g, i, std::min(i + step, s.q_length), heads, shape.window};
  return {blocks, static_cast<size_t>(count)};
}

}  // namespace

void attention_forward(Context& ctx, const Tensor& o, const Tensor& lse, const Tensor& q,
                       const Tensor& k, const Tensor& v, std::span<const AttentionSpan> spans,
                       const AttentionShape& shape) {
  require_attention_shapes(q, k, v, spans, shape);
  ZAYA_REQUIRE(o.dtype == q.dtype && o.columns() == q.columns() && o.rows() == q.rows());
  ZAYA_REQUIRE(!lse || (lse.columns() == shape.query_heads && lse.rows() == q.rows()));
  if (ctx.rows == Rows::apart) return attention_rows_forward(o, lse, q, k, v, spans, shape);
  HWY_DYNAMIC_DISPATCH(forward_op)(o, lse, q, k, v, plan_blocks(spans, shape), shape);
}

}  // namespace zaya
#endif
