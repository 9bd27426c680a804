#include "backend/cpu/gemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "backend/cpu/threads.h"

namespace zaya {
namespace {

// Sums longer than this are added up chunk by chunk: oneDNN never sees a sum long enough to cut it
// in its own way, and widened bf16 operands stay small.
constexpr int64_t kChunk = 512;
constexpr int64_t kMaxTileRows = 192;

// Below this many tiles the tiles are made smaller, so that many threads find work.
constexpr int64_t kFewTiles = 16;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// oneDNN's kernels treat a lone pair of leftover rows differently, which would let a row's bits
// depend on the rows around it. These row counts leave no such pair with kernels of 4, 6, 8 and 12
// rows.
int64_t uniform_rows(int64_t rows) {
  if (rows <= 16) return 16;
  if (rows > 48 && rows <= 64) return 64;
  return ceil_div(rows, 24) * 24;
}

// A piece of `total` of about `target`, all pieces nearly equal and a multiple of 16.
int64_t even_piece(int64_t total, int64_t target) {
  const int64_t pieces = ceil_div(total, target);
  return ceil_div(ceil_div(total, pieces), 16) * 16;
}

// How one product is cut: a function of its shape alone. Column cuts do not look at M, because a
// row must come out the same in a batch of any size.
struct Tiling {
  int64_t m, n, k;
  int64_t tile_rows, tile_columns;
  int64_t row_tiles, column_tiles;

  explicit Tiling(const Gemm& g)
      : m(g.c.rows()), n(g.c.columns()), k(g.transpose_a ? g.a.rows() : g.a.columns()) {
    if (m == 0 || n == 0) {
      row_tiles = column_tiles = tile_rows = tile_columns = 0;
      return;
    }
    tile_columns = even_piece(n, 128);
    tile_rows = g.transpose_a ? even_piece(m, 128) : kMaxTileRows;
    if (ceil_div(m, tile_rows) * ceil_div(n, tile_columns) < kFewTiles) {
      tile_rows = g.transpose_a ? even_piece(m, 64) : kMaxTileRows / 2;
      if (g.transpose_a) tile_columns = even_piece(n, 64);
    }
    row_tiles = ceil_div(m, tile_rows);
    column_tiles = ceil_div(n, tile_columns);
  }
  int64_t count() const { return row_tiles * column_tiles; }
};

struct Tile {
  int64_t row, rows;        // of C
  int64_t column, columns;  // of C
  int64_t padded_rows;      // rows computed
};

// A block of f32 that oneDNN can read or write.
struct Block {
  float* data;
  int64_t stride;
};

void widen(float* to, const bf16* from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i].bits) << 16);
  }
}

// Copies a block of any activation format to f32, and clears the rows from `rows` to `padded_rows`.
void copy_block(Block to, const Tensor& from, int64_t row, int64_t rows, int64_t column,
                int64_t columns, int64_t padded_rows) {
  for (int64_t r = 0; r < rows; ++r) {
    float* out = to.data + r * to.stride;
    if (from.dtype == DType::f32) {
      std::memcpy(out, from.row<float>(row + r) + column, columns * sizeof(float));
    } else {
      widen(out, from.row<bf16>(row + r) + column, columns);
    }
  }
  for (int64_t r = rows; r < padded_rows; ++r) {
    std::memset(to.data + r * to.stride, 0, columns * sizeof(float));
  }
}

// Walking down rows this far apart (a column of a wide matrix) maps onto few cache sets: a copy is
// faster, by up to two times.
bool far_apart(const Tensor& t) { return t.row_stride >= 512; }

// The block as f32: where it is if it can be used there, else a copy in the thread's buffer.
template <class Tag>
Block operand(const Tensor& t, int64_t row, int64_t rows, int64_t column, int64_t columns,
              int64_t padded_rows, bool sum_is_down) {
  if (t.dtype == DType::f32 && rows == padded_rows && !(sum_is_down && far_apart(t))) {
    return {t.row<float>(row) + column, std::max(t.row_stride, t.columns())};
  }
  const Block copy{thread_buffer<Tag, float>(padded_rows * columns), columns};
  copy_block(copy, t, row, rows, column, columns, padded_rows);
  return copy;
}

void sgemm(const Gemm& g, Block c, Block a, Block b, int64_t m, int64_t n, int64_t k, float beta) {
  const auto status = dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', m, n, k,
                                 1.0f, a.data, a.stride, b.data, b.stride, beta, c.data, c.stride);
  ZAYA_REQUIRE(status == dnnl_success);
}

void store_block(const Tensor& to, const Tile& tile, Block from) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    const float* in = from.data + r * from.stride;
    if (to.dtype == DType::f32) {
      std::memcpy(to.row<float>(tile.row + r) + tile.column, in, tile.columns * sizeof(float));
    } else {
      bf16* out = to.row<bf16>(tile.row + r) + tile.column;
      for (int64_t i = 0; i < tile.columns; ++i) out[i] = bf16(in[i]);
    }
  }
}

void compute_tile(const Gemm& g, const Tiling& tiling, const Tile& tile) {
  struct A;
  struct B;
  struct C;
  const bool direct = g.c.dtype == DType::f32 && tile.padded_rows == tile.rows;
  Block c;
  if (direct) {
    c = {g.c.row<float>(tile.row) + tile.column, std::max(g.c.row_stride, g.c.columns())};
  } else {
    c = {thread_buffer<C, float>(tile.padded_rows * tile.columns), tile.columns};
    if (g.accumulate) {
      copy_block(c, g.c, tile.row, tile.rows, tile.column, tile.columns, tile.padded_rows);
    }
  }
  for (int64_t k = 0; k < tiling.k; k += kChunk) {
    const int64_t depth = std::min(kChunk, tiling.k - k);
    const Block a = g.transpose_a
                        ? operand<A>(g.a, k, depth, tile.row, tile.rows, depth, true)
                        : operand<A>(g.a, tile.row, tile.rows, k, depth, tile.padded_rows, false);
    const Block b = g.transpose_b
                        ? operand<B>(g.b, tile.column, tile.columns, k, depth, tile.columns, false)
                        : operand<B>(g.b, k, depth, tile.column, tile.columns, depth, true);
    const float beta = k > 0 || g.accumulate ? 1.0f : 0.0f;
    sgemm(g, c, a, b, tile.padded_rows, tile.columns, depth, beta);
  }
  if (!direct) store_block(g.c, tile, c);
}

// Keeps oneDNN to the calling thread. It asks OpenMP how many threads it may use, and is answered
// one inside a parallel region only.
class OneThread {
 public:
  OneThread() : saved_(omp_in_parallel() ? 0 : omp_get_max_threads()) {
    if (saved_ > 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (saved_ > 1) omp_set_num_threads(saved_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int saved_;
};

void run_tile(const Gemm& g, const Tiling& tiling, int64_t index) {
  const OneThread one_thread;
  Tile tile;
  tile.row = index / tiling.column_tiles * tiling.tile_rows;
  tile.column = index % tiling.column_tiles * tiling.tile_columns;
  tile.rows = std::min(tiling.tile_rows, tiling.m - tile.row);
  tile.columns = std::min(tiling.tile_columns, tiling.n - tile.column);
  tile.padded_rows = g.transpose_a ? tile.rows : uniform_rows(tile.rows);
  compute_tile(g, tiling, tile);
}

bool is_activation(const Tensor& t) { return t.dtype == DType::f32 || t.dtype == DType::bf16; }

void check(const Gemm& g, const Tiling& t) {
  ZAYA_REQUIRE(is_activation(g.a) && is_activation(g.b) && is_activation(g.c));
  ZAYA_REQUIRE(!g.accumulate || g.c.dtype == DType::f32);
  if (t.count() == 0 || t.k == 0) return;
  ZAYA_REQUIRE((g.transpose_a ? g.a.columns() : g.a.rows()) == t.m);
  ZAYA_REQUIRE((g.transpose_b ? g.b.columns() : g.b.rows()) == t.k);
  ZAYA_REQUIRE((g.transpose_b ? g.b.rows() : g.b.columns()) == t.n);
}

void clear(const Tensor& c) {
  const int64_t bytes = static_cast<int64_t>(size_of(c.dtype));
  for (int64_t r = 0; r < c.rows(); ++r) {
    std::memset(static_cast<char*>(c.data) + r * c.row_stride * bytes, 0, c.columns() * bytes);
  }
}

// Checks a product, and does it when it has no sums. Returns its tiles still to be computed.
int64_t prepare(const Gemm& g, const Tiling& tiling) {
  check(g, tiling);
  if (tiling.k > 0) return tiling.count();
  if (!g.accumulate) clear(g.c);
  return 0;
}

}  // namespace

void gemm(const Gemm& product) {
  const Tiling tiling(product);
  const int64_t tiles = prepare(product, tiling);
  parallel_for(tiles, [&](int64_t i) { run_tile(product, tiling, i); });
}

void gemm_batch(std::span<const Gemm> products) {
  struct FirstTile;
  const int64_t count = static_cast<int64_t>(products.size());
  int64_t* first = thread_buffer<FirstTile, int64_t>(count + 1);
  first[0] = 0;
  for (int64_t p = 0; p < count; ++p) {
    first[p + 1] = first[p] + prepare(products[p], Tiling(products[p]));
  }
  parallel_for(first[count], [&](int64_t i) {
    const int64_t p = std::upper_bound(first, first + count + 1, i) - first - 1;
    run_tile(products[p], Tiling(products[p]), i - first[p]);
  });
}

}  // namespace zaya
