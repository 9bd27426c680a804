// The blocks attention is made of, included once per instruction set.
//
// One lane is one query: scores are held transposed, [keys, lanes], so that a query's maximum, sum
// and output are sums down its own lane, in key order, whatever the other lanes hold. That is what
// makes a query's bits independent of its batch. The query heads of one key head lie side by side:
// lane m of a block is query m / G, head m % G. Lanes come in panels of two vectors, and an array
// over the lanes of a block is stored panel by panel.
//
// Products run on f32 values, or on words of two bf16 where the machine multiplies those, in
// vectors or in tile registers: then two terms of each sum lie in one word, and an array of n terms
// has n / 2 words. Which terms share a word or a tile depends on their place in the sequence, never
// on the block.

#if defined(ZAYA_ATTENTION_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZAYA_ATTENTION_KERNELS_INL_H_
#undef ZAYA_ATTENTION_KERNELS_INL_H_
#else
#define ZAYA_ATTENTION_KERNELS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "backend/cpu/bf16_pairs-inl.h"
#include "backend/cpu/bf16_tiles.h"
#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "backend/cpu/vector-inl.h"
#include "core/ceil_div.h"
#include "core/tensor.h"
#include "ops/attention/attention_plan.h"

// After highway.h.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

HWY_INLINE int64_t panel_width() { return 2 * static_cast<int64_t>(hn::Lanes(FullTag())); }
HWY_INLINE int64_t panels_for(int64_t lanes) { return ceil_div(lanes, panel_width()); }

// e^x, but NaN where x is NaN: Highway's Exp answers 0 there, which would hide a diverged model.
HWY_INLINE hn::Vec<FullTag> exp_keeping_nan(FullTag d, hn::Vec<FullTag> x) {
  return hn::MulAdd(x, hn::Zero(d), hn::Exp(d, x));
}

// The kinds of products: terms in one element of A or B, and terms (and rows of keys) that products
// take at a time. A thread that multiplies holds Registers.
struct Values {
  static constexpr int64_t kTerms = 1;
  static constexpr int64_t kUnit = 1;
  struct Registers {};
  static HWY_INLINE hn::Vec<FullTag> add_product(hn::Vec<FullTag> a, hn::Vec<FullTag> b,
                                                 hn::Vec<FullTag> sum) {
    return hn::MulAdd(a, b, sum);
  }
};
struct Words {
  static constexpr int64_t kTerms = 2;
  static constexpr int64_t kUnit = 2;
  struct Registers {};
  static HWY_INLINE hn::Vec<FullTag> add_product(hn::Vec<FullTag> a, hn::Vec<FullTag> b,
                                                 hn::Vec<FullTag> sum) {
    return add_pair_products(a, b, sum);
  }
};
struct Tiles {
  static constexpr int64_t kTerms = 2;
  static constexpr int64_t kUnit = 32;
  using Registers = TileRegisters;
  static_assert(kUnit == TileProduct::kRows && kUnit == kTerms * TileProduct::kWords);
  static_assert(kKeyBlock % kUnit == 0);
};
template <class Kind>
inline constexpr bool kInTiles = std::is_same_v<Kind, Tiles>;

// Terms [rows, width] become elements [rows / kTerms, width], in place: each a value, or a word of
// two rows. `rows` is even.
template <class Kind>
HWY_INLINE void join_rows(float* x, int64_t rows, int64_t width) {
  if constexpr (Kind::kTerms == 2) {
    const FullTag d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t r = 0; r < rows; r += 2)
      for (int64_t i = 0; i < width; i += lanes) {
        const auto first = hn::LoadU(d, x + r * width + i);
        const auto second = hn::LoadU(d, x + (r + 1) * width + i);
        hn::StoreU(to_words(first, second), d, x + r / 2 * width + i);
      }
  }
}

// Terms [d][W] of panel p, all panels laid end to end, become elements [d / kTerms][W] of panel p
// among such panels. Call it for p = 0, 1, ...: an earlier panel makes room for a later one.
template <class Kind>
HWY_INLINE void join_panel(float* panels, int64_t p, int64_t d) {
  if constexpr (Kind::kTerms == 2) {
    const int64_t size = d * panel_width();
    join_rows<Kind>(panels + p * size, d, panel_width());
    std::memmove(panels + p * size / 2, panels + p * size, size / 2 * sizeof(float));
  }
}

// A count of terms rounded up to whole units, and a range that starts with one.
template <class Kind>
HWY_INLINE int64_t whole_units(int64_t count) {
  return round_up(count, Kind::kUnit);
}
template <class Kind>
HWY_INLINE KeyRange whole_units(const KeyRange& range) {
  return {range.begin / Kind::kUnit * Kind::kUnit, range.end};
}

// C [rows, panel] (+)= A B, where A(r, k) = a[r * a_row + k * a_step] and row k of B is b + k *
// b_step. `batches` of `steps` follow one another along k, a and b moving by a_batch and b_batch
// between.
struct Product {
  float* c = nullptr;
  int64_t c_row = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_step = 0;
  const float* b = nullptr;
  int64_t b_step = 0;
  int64_t steps = 0;
  int64_t batches = 1, a_batch = 0, b_batch = 0;
  const float* factor = nullptr;  // lanes; C = factor * C + A B
};

// What C starts from.
enum class Start { zero, add, scale };

// R rows of C at once, in registers. A sum is one chain of multiply-adds along k, so its bits do
// not depend on which tile holds its row.
template <class Kind, int R, Start kStart>
HWY_INLINE void tile(const Product& p, int64_t row) {
  const FullTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  float* c = p.c + row * p.c_row;
  hn::Vec<FullTag> left[R], right[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    left[r] = kStart == Start::zero ? hn::Zero(d) : hn::LoadU(d, c + r * p.c_row);
    right[r] = kStart == Start::zero ? hn::Zero(d) : hn::LoadU(d, c + r * p.c_row + lanes);
    if (kStart == Start::scale) {
      left[r] = hn::Mul(left[r], hn::LoadU(d, p.factor));
      right[r] = hn::Mul(right[r], hn::LoadU(d, p.factor + lanes));
    }
  }
  for (int64_t batch = 0; batch < p.batches; ++batch) {
    const float* a = p.a + row * p.a_row + batch * p.a_batch;
    const float* b = p.b + batch * p.b_batch;
    for (int64_t k = 0; k < p.steps; ++k, a += p.a_step, b += p.b_step) {
      const auto b_left = hn::LoadU(d, b), b_right = hn::LoadU(d, b + lanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const auto x = hn::Set(d, a[r * p.a_row]);
        left[r] = Kind::add_product(x, b_left, left[r]);
        right[r] = Kind::add_product(x, b_right, right[r]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    hn::StoreU(left[r], d, c + r * p.c_row);
    hn::StoreU(right[r], d, c + r * p.c_row + lanes);
  }
}

// Twelve sums in flight hide the latency of a multiply-add and fit sixteen registers.
constexpr int kTileRows = 6;

// The same in tile registers. Writes whole units of rows; a_step is 1.
template <Start kStart>
HWY_INLINE void multiply_in_tiles(const Product& p, int64_t rows) {
  rows = whole_units<Tiles>(rows);
  if constexpr (kStart == Start::scale) {
    const FullTag d;
    const int64_t width = panel_width(), lanes = width / 2;
    const auto left = hn::LoadU(d, p.factor), right = hn::LoadU(d, p.factor + lanes);
    for (float* c = p.c; c < p.c + rows * p.c_row; c += p.c_row) {
      hn::StoreU(hn::Mul(hn::LoadU(d, c), left), d, c);
      hn::StoreU(hn::Mul(hn::LoadU(d, c + lanes), right), d, c + lanes);
    }
  }
  multiply_tiles({.c = p.c,
                  .c_row = p.c_row,
                  .a = p.a,
                  .a_row = p.a_row,
                  .b = p.b,
                  .b_row = p.b_step,
                  .steps = p.steps / TileProduct::kWords,
                  .batches = p.batches,
                  .a_batch = p.a_batch,
                  .b_batch = p.b_batch,
                  .accumulate = kStart != Start::zero},
                 rows);
}

template <class Kind, Start kStart>
HWY_INLINE void multiply_in_vectors(const Product& p, int64_t rows) {
  int64_t row = 0;
  for (; row + kTileRows <= rows; row += kTileRows) tile<Kind, kTileRows, kStart>(p, row);
  switch (rows - row) {
    case 5:
      return tile<Kind, 5, kStart>(p, row);
    case 4:
      return tile<Kind, 4, kStart>(p, row);
    case 3:
      return tile<Kind, 3, kStart>(p, row);
    case 2:
      return tile<Kind, 2, kStart>(p, row);
    case 1:
      return tile<Kind, 1, kStart>(p, row);
    default:
      return;
  }
}

template <class Kind, Start kStart>
HWY_INLINE void multiply(const Product& p, int64_t rows) {
  if constexpr (kInTiles<Kind>) {
    multiply_in_tiles<kStart>(p, rows);
  } else {
    multiply_in_vectors<Kind, kStart>(p, rows);
  }
}

// rows [row, row + count), columns [column, column + d) of x as f32 [count, stride], with zeros in
// columns d to stride.
template <class T>
void widen_rows(float* to, int64_t stride, const Tensor& x, int64_t row, int64_t count,
                int64_t column, int64_t d) {
  for (int64_t r = 0; r < count; ++r, to += stride) {
    const T* from = x.row<T>(row + r) + column;
    for_each_vector(d, [&](auto tag, int64_t c) { store(load(tag, from + c), tag, to + c); });
    std::fill(to + d, to + stride, 0.0f);
  }
}

// The same rows and columns of x as elements along the channels, [count, d / kTerms].
template <class Kind, class T>
void rows_along_channels(float* to, const Tensor& x, int64_t row, int64_t count, int64_t column,
                         int64_t d) {
  if constexpr (Kind::kTerms == 1) {
    widen_rows<T>(to, d, x, row, count, column, d);
  } else {
    for (int64_t r = 0; r < count; ++r)
      std::memcpy(to + r * d / 2, x.row<bf16>(row + r) + column, d * sizeof(bf16));
  }
}

// Words of (first[c], second[c]) for d channels; a row that is null counts as zeros.
HWY_INLINE void join_bf16_rows(float* to, const bf16* first, const bf16* second, int64_t d) {
  for_each_vector(d, [&](auto tag, int64_t c) {
    const hn::RebindToUnsigned<decltype(tag)> bits;
    const auto value = [&](const bf16* row)
                           HWY_ATTR { return row ? load(tag, row + c) : hn::Zero(tag); };
    const auto lower = hn::ShiftRight<16>(hn::BitCast(bits, value(first)));
    store(hn::BitCast(tag, hn::Or(hn::BitCast(bits, value(second)), lower)), tag, to + c);
  });
}

// Up to kKeyBlock rows of x as elements along the rows, what weighted_sum_of_rows reads:
// [count / kTerms, d], or [d, kKeyBlock / kTerms] for tiles, which want a sum's terms side by side.
// A last unit is filled up with zeros.
template <class Kind, class T>
void rows_along_rows(float* to, const Tensor& x, int64_t row, int64_t count, int64_t column,
                     int64_t d) {
  if constexpr (Kind::kTerms == 1) {
    widen_rows<T>(to, d, x, row, count, column, d);
  } else {
    struct Tag;
    float* words = kInTiles<Kind> ? thread_buffer<Tag, float>(d) : to;
    const auto row_or_null = [&](int64_t r) {
      return r < count ? x.row<bf16>(row + r) + column : nullptr;
    };
    for (int64_t r = 0; r < whole_units<Kind>(count); r += 2) {
      join_bf16_rows(words, row_or_null(r), row_or_null(r + 1), d);
      if constexpr (kInTiles<Kind>) {
        for (int64_t c = 0; c < d; ++c) to[c * (kKeyBlock / 2) + r / 2] = words[c];
      } else {
        words += d;
      }
    }
  }
}

// scores [count, W] = rows [count, d] (rows_along_channels) times the lanes of a panel,
// [d / kTerms][W]. Writes whole units of rows.
template <class Kind>
HWY_INLINE void panel_products(float* scores, const float* rows, const float* lanes, int64_t count,
                               int64_t d) {
  const int64_t W = panel_width(), channels = d / Kind::kTerms;
  multiply<Kind, Start::zero>({.c = scores,
                               .c_row = W,
                               .a = rows,
                               .a_row = channels,
                               .a_step = 1,
                               .b = lanes,
                               .b_step = W,
                               .steps = channels},
                              count);
}

// sum [d][W] (+)= rows [skip, skip + count) of a block (rows_along_rows) weighted by weights
// [count][W], f32 of which products make elements in place; those up to a whole unit are zeros.
// factor: Start::scale's.
template <class Kind, Start kStart>
HWY_INLINE void weighted_sum_of_rows(float* sum, const float* rows, int64_t skip, float* weights,
                                     int64_t count, int64_t d, const float* factor = nullptr) {
  const int64_t W = panel_width(), terms = whole_units<Kind>(count);
  join_rows<Kind>(weights, terms, W);
  multiply<Kind, kStart>(
      {.c = sum,
       .c_row = W,
       .a = kInTiles<Kind> ? rows + skip / Kind::kTerms : rows + skip / Kind::kTerms * d,
       .a_row = kInTiles<Kind> ? kKeyBlock / Kind::kTerms : 1,
       .a_step = kInTiles<Kind> ? 1 : d,
       .b = weights,
       .b_step = W,
       .steps = terms / Kind::kTerms,
       .factor = factor},
      d);
}

// f.operator()<T, Kind>() for tensors of `dtype` and heads of d channels.
template <class F>
void visit_products(DType dtype, int64_t d, F&& f) {
  if (dtype == DType::f32) return f.template operator()<float, Values>();
#if HWY_TARGET <= HWY_AVX3
  if (has_bf16_tiles() && d % Tiles::kUnit == 0) return f.template operator()<bf16, Tiles>();
  if (multiplies_bf16() && d % Words::kUnit == 0) return f.template operator()<bf16, Words>();
#endif
  (void)d;
  f.template operator()<bf16, Values>();
}

// The block's lanes, f32 [lanes, stride] (zeros past column d), as panels [d][width]; lanes that do
// not exist are zero.
HWY_INLINE void transpose_to_panels(float* to, const float* from, int64_t lanes, int64_t stride,
                                    int64_t d) {
  const int64_t width = panel_width();
  for (int64_t first = 0; first < lanes; first += width, to += d * width) {
    const int64_t count = std::min(width, lanes - first);
    if (count < width) std::fill(to, to + d * width, 0.0f);
    for (int64_t c = 0; c < d; ++c)
      for (int64_t m = 0; m < count; ++m) to[c * width + m] = from[(first + m) * stride + c];
  }
}

// Column m of a panel [d][width] as T[d].
template <class T>
HWY_INLINE void lane_to_row(T* to, const float* panel, int64_t m, int64_t d) {
  const int64_t width = panel_width();
  for (int64_t c = 0; c < d; ++c) to[c] = T(panel[c * width + m]);
}

// Which keys each lane of a panel sees, and what that makes of a block of keys.
struct PanelKeys {
  KeyRange any;  // seen by some lane
  KeyRange all;  // seen by every lane
};

// The panel that starts at lane `first` of a block; lanes that do not exist see what the last one
// does. begin and end [width]: the range of each lane, exact in f32 (attention_plan.h).
HWY_INLINE PanelKeys panel_keys(float* begin, float* end, const QueryBlock& block, int64_t first) {
  const int64_t width = panel_width(), last = std::min(first + width, block.lanes()) - 1;
  for (int64_t m = 0; m < width; ++m) {
    const KeyRange keys = block.keys_of_lane(std::min(first + m, last));
    begin[m] = static_cast<float>(keys.begin);
    end[m] = static_cast<float>(keys.end);
  }
  const KeyRange oldest = block.keys_of_lane(first), newest = block.keys_of_lane(last);
  return {{oldest.begin, newest.end}, {newest.begin, oldest.end}};
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#endif
