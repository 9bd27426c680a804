#include "backend/cpu/gemm.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/matmul_kernel.h"
#include "backend/cpu/quantized_weight.h"
#include "backend/cpu/threads.h"
#include "core/ceil_div.h"

namespace zaya {
namespace {

// Below this many tiles the tiles are made smaller, so that many threads find work.
constexpr int64_t kFewTiles = 4;

// A piece of `total` of at most `most`, all pieces nearly equal and a multiple of 16.
int64_t even_piece(int64_t total, int64_t most) {
  return round_up(ceil_div(total, ceil_div(total, most)), 16);
}

// What products multiply in: bf16 pairs where every operand is bf16 and the machine can.
DType operand_dtype(const Gemm& g) {
  const auto is_bf16 = [](const Tensor& a, const Weight& b) {
    return a.dtype == DType::bf16 && (b.quantized() || b.values.dtype == DType::bf16);
  };
  bool pairs = is_bf16(g.a, g.b);
  for (const GemmTerm& term : g.more) pairs = pairs && is_bf16(term.a, term.b);
  return multiplied_format(pairs ? DType::bf16 : DType::f32);
}

int64_t depth_of(const Gemm& g, const GemmTerm& term) {
  return g.transpose_a ? term.a.rows() : term.a.columns();
}

// The largest tile of C.
struct TileLimit {
  int64_t rows, columns;
};
// From the fastest to those that give many threads something to do.
constexpr TileLimit kTileLimits[] = {{256, 512}, {128, 512}, {128, 256}, {64, 128}};
// Instead of the first where C is wider than a tile and has to be written in pieces anyway: oneDNN
// packs B anew for every tile, and a tall tile has less of it.
constexpr TileLimit kTallTile = {512, 256};

// How one product is cut: a function of shapes alone.
struct Tiling {
  int64_t m, n;
  int64_t tile_rows = 0, tile_columns = 0;
  int64_t row_tiles = 0, column_tiles = 0;

  Tiling(const Gemm& g, const TileLimit& limit) : m(g.c.rows()), n(g.c.columns()) {
    if (m == 0 || n == 0) return;
    const bool tall = !g.transpose_a && limit.rows == kTileLimits[0].rows && n > limit.columns &&
                      m >= kTallTile.rows;
    const TileLimit most = tall ? kTallTile : limit;
    // oneDNN turns A round while it copies it, and is fastest with fewer rows then.
    tile_rows = g.transpose_a ? even_piece(m, std::min<int64_t>(most.rows, 128))
                              : std::min(most.rows, most_rows());
    tile_columns = even_piece(n, most.columns);
    row_tiles = ceil_div(m, tile_rows);
    column_tiles = ceil_div(n, tile_columns);
  }
  int64_t count() const { return row_tiles * column_tiles; }
};

// The first limit that cuts products into enough tiles.
TileLimit choose_limit(std::span<const Gemm> products) {
  TileLimit chosen = {};
  for (const TileLimit& limit : kTileLimits) {
    chosen = limit;
    int64_t count = 0;
    for (const Gemm& g : products) count += Tiling(g, limit).count();
    if (count >= kFewTiles) break;
  }
  return chosen;
}

struct Tile {
  int64_t row, rows;        // of C
  int64_t column, columns;  // of C
  int64_t padded_rows;      // rows computed
};

void widen(float* to, const bf16* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i].bits) << 16);
  }
}

// A block of an operand: rows [row, row + rows) and columns [column, column + columns).
struct Block {
  int64_t row, rows, column, columns;
  int64_t padded_rows;  // rows the product reads; those past `rows` are zero
};

template <class To>
void copy_block(To* to, const Tensor& from, const Block& b) {
  for (int64_t r = 0; r < b.rows; ++r, to += b.columns) {
    if (from.dtype == DTypeOf<To>::value) {
      std::memcpy(to, from.row<To>(b.row + r) + b.column, b.columns * sizeof(To));
    } else if constexpr (std::is_same_v<To, float>) {
      widen(to, from.row<bf16>(b.row + r) + b.column, b.columns);
    }
  }
  std::fill_n(to, (b.padded_rows - b.rows) * b.columns, To());
}

// The block, dense: where it is if it is dense there, else a copy in the thread's buffer. A copy is
// little beside the product, and lets oneDNN use its best kernels.
template <class Tag>
const void* operand(const Tensor& t, DType dtype, const Block& b) {
  const bool whole_rows = b.columns == t.columns() && (t.contiguous() || b.rows == 1);
  if (t.dtype == dtype && b.rows == b.padded_rows && whole_rows) return t.address(b.row);
  return visit_activation(dtype, [&]<class T>() -> const void* {
    T* copy = thread_buffer<Tag, T>(b.padded_rows * b.columns);
    copy_block(copy, t, b);
    return copy;
  });
}

// The block of a weight of codes, in values.
template <class Tag>
const void* decoded(const Weight& w, DType dtype, const Block& b) {
  return visit_activation(dtype, [&]<class T>() -> const void* {
    T* copy = thread_buffer<Tag, T>(b.rows * b.columns);
    for (int64_t r = 0; r < b.rows; ++r)
      decode_weights(copy + r * b.columns, w, b.row + r, b.column, b.columns);
    return copy;
  });
}

template <class From>
void store_block(const Tensor& to, const Tile& tile, const From* from) {
  for (int64_t r = 0; r < tile.rows; ++r, from += tile.columns) {
    if (to.dtype == DTypeOf<From>::value) {
      std::memcpy(to.row<From>(tile.row + r) + tile.column, from, tile.columns * sizeof(From));
    } else if constexpr (std::is_same_v<From, float>) {
      bf16* out = to.row<bf16>(tile.row + r) + tile.column;
      for (int64_t i = 0; i < tile.columns; ++i) out[i] = bf16(from[i]);
    }
  }
}

// Adds one product, kMostTerms of its sums at a time, to the tile at c (dense, [padded_rows,
// columns]); `started`: c holds a sum.
void add_term(void* c, const Gemm& g, const GemmTerm& term, const Tile& tile, DType in, DType out,
              bool started) {
  struct A;
  struct B;
  const int64_t depth = depth_of(g, term);
  // Where A is transposed the depth counts tokens, and so varies.
  const bool tokens = g.transpose_a && !g.transpose_b;
  for (int64_t k = 0, some; k < depth; k += some, started = true) {
    some = std::min(kMostTerms, depth - k);
    // The last few are a sum of their own, so that only they need be copied to be padded.
    if (tokens && some > kTermUnit) some -= some % kTermUnit;
    const int64_t padded = tokens ? uniform_terms(some) : some;
    const void* a = g.transpose_a
                        ? operand<A>(term.a, in, {k, some, tile.row, tile.rows, padded})
                        : operand<A>(term.a, in, {tile.row, tile.rows, k, some, tile.padded_rows});
    const Block block = g.transpose_b ? Block{tile.column, tile.columns, k, some, tile.columns}
                                      : Block{k, some, tile.column, tile.columns, padded};
    const void* b =
        term.b.quantized() ? decoded<B>(term.b, in, block) : operand<B>(term.b.values, in, block);
    matmul({.m = tile.padded_rows,
            .n = tile.columns,
            .k = padded,
            .transpose_a = g.transpose_a,
            .transpose_b = g.transpose_b,
            .in = in,
            .out = out,
            .accumulate = started},
           c, a, b);
  }
}

void compute_tile(const Gemm& g, const Tile& tile) {
  struct C;
  const DType in = operand_dtype(g);
  // bf16 pairs, summed in one go, are rounded by oneDNN; other sums are kept in f32 until the end.
  const bool rounded = g.c.dtype == DType::bf16 && in == DType::bf16 && g.more.empty() &&
                       depth_of(g, {g.a, g.b}) <= kMostTerms;
  const DType out = rounded ? DType::bf16 : DType::f32;
  const bool direct = g.c.dtype == out && tile.padded_rows == tile.rows &&
                      tile.columns == g.c.columns() && g.c.contiguous();
  void* c = direct ? static_cast<void*>(g.c.address(tile.row))
                   : thread_buffer<C, float>(tile.padded_rows * tile.columns);
  if (!direct && g.accumulate)
    copy_block(static_cast<float*>(c), g.c,
               {tile.row, tile.rows, tile.column, tile.columns, tile.padded_rows});
  add_term(c, g, {g.a, g.b}, tile, in, out, g.accumulate);
  for (const GemmTerm& term : g.more) add_term(c, g, term, tile, in, out, true);
  if (direct) return;
  if (rounded)
    store_block(g.c, tile, static_cast<const bf16*>(c));
  else
    store_block(g.c, tile, static_cast<const float*>(c));
}

void run_tile(const Gemm& g, const Tiling& tiling, int64_t index) {
  Tile tile;
  tile.row = index / tiling.column_tiles * tiling.tile_rows;
  tile.column = index % tiling.column_tiles * tiling.tile_columns;
  tile.rows = std::min(tiling.tile_rows, tiling.m - tile.row);
  tile.columns = std::min(tiling.tile_columns, tiling.n - tile.column);
  tile.padded_rows = g.transpose_a ? tile.rows : uniform_rows(tile.rows);
  compute_tile(g, tile);
}

bool is_activation(const Tensor& t) { return t.dtype == DType::f32 || t.dtype == DType::bf16; }

void check(const Gemm& g, const GemmTerm& term) {
  ZAYA_REQUIRE(is_activation(term.a) && is_activation(g.c));
  ZAYA_REQUIRE(term.b.quantized() ? g.transpose_b : is_activation(term.b.values));
  const int64_t m = g.c.rows(), n = g.c.columns(), k = depth_of(g, term);
  if (m == 0 || n == 0 || k == 0) return;
  ZAYA_REQUIRE((g.transpose_a ? term.a.columns() : term.a.rows()) == m);
  ZAYA_REQUIRE((g.transpose_b ? term.b.columns() : term.b.rows()) == k);
  ZAYA_REQUIRE((g.transpose_b ? term.b.rows() : term.b.columns()) == n);
}

void clear(const Tensor& c) {
  const size_t bytes = c.columns() * size_of(c.dtype);
  for (int64_t r = 0; r < c.rows(); ++r) std::memset(c.address(r), 0, bytes);
}

// Checks a product, and does it when it has no sums. Returns its tiles still to be computed.
int64_t prepare(const Gemm& g, const Tiling& tiling) {
  ZAYA_REQUIRE(!g.accumulate || g.c.dtype == DType::f32);
  check(g, {g.a, g.b});
  for (const GemmTerm& term : g.more) {
    check(g, term);
    ZAYA_REQUIRE(depth_of(g, term) > 0);
  }
  if (depth_of(g, {g.a, g.b}) > 0) return tiling.count();
  ZAYA_REQUIRE(g.more.empty());
  if (!g.accumulate) clear(g.c);
  return 0;
}

}  // namespace

void gemm(const Gemm& product) { gemm_batch({&product, 1}); }

void gemm_batch(std::span<const Gemm> products) {
  struct FirstTile;
  const TileLimit limit = choose_limit(products);
  const int64_t count = static_cast<int64_t>(products.size());
  int64_t* first = thread_buffer<FirstTile, int64_t>(count + 1);
  first[0] = 0;
  for (int64_t p = 0; p < count; ++p) {
    first[p + 1] = first[p] + prepare(products[p], Tiling(products[p], limit));
  }
  parallel_for(first[count], [&](int64_t i) {
    const int64_t p = std::upper_bound(first, first + count + 1, i) - first - 1;
    run_tile(products[p], Tiling(products[p], limit), i - first[p]);
  });
}

}  // namespace zaya
