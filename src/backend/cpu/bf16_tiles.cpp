#include "backend/cpu/bf16_tiles.h"

#include "core/error.h"

namespace zaya {

#if defined(__x86_64__)

namespace {

// What ldtilecfg reads.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  TileShapes() {
    for (int t = 0; t < 8; ++t) {
      row_bytes[t] = 64;
      rows[t] = 16;
    }
  }
};
static_assert(sizeof(TileShapes) == 64);

// Written out, as the compiler may not be told that every machine has them. It never uses tile
// registers itself: what one statement leaves there, the next one finds.
template <int kTile>
void load_tile(const void* from, int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
               :
               : "r"(from), "r"(row_bytes), "i"(kTile)
               : "memory");
}
template <int kTile>
void store_tile(void* to, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(kTile) : "memory");
}
template <int kTile>
void clear_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kC, int kA, int kB>
void add_tile_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}

// Rows [row, row + kRows) of C: tiles 0 to 3, of which 1 is right of 0 and 2 below it; A's two
// in 4 and 5, B's in 6 and 7.
void multiply_rows(const TileProduct& p, int64_t row) {
  constexpr int64_t kHalf = 16;  // rows, and columns, of one tile
  constexpr int64_t kWord = 4;
  const int64_t c_bytes = p.c_row * kWord, a_bytes = p.a_row * kWord, b_bytes = p.b_row * kWord;
  float* upper = p.c + row * p.c_row;
  float* lower = upper + kHalf * p.c_row;
  if (p.accumulate) {
    load_tile<0>(upper, c_bytes);
    load_tile<1>(upper + kHalf, c_bytes);
    load_tile<2>(lower, c_bytes);
    load_tile<3>(lower + kHalf, c_bytes);
  } else {
    clear_tile<0>();
    clear_tile<1>();
    clear_tile<2>();
    clear_tile<3>();
  }
  for (int64_t batch = 0; batch < p.batches; ++batch) {
    const uint32_t* a = static_cast<const uint32_t*>(p.a) + row * p.a_row + batch * p.a_batch;
    const uint32_t* b = static_cast<const uint32_t*>(p.b) + batch * p.b_batch;
    for (int64_t s = 0; s < p.steps;
         ++s, a += TileProduct::kWords, b += TileProduct::kWords * p.b_row) {
      load_tile<6>(b, b_bytes);
      load_tile<4>(a, a_bytes);
      add_tile_product<0, 4, 6>();
      load_tile<7>(b + kHalf, b_bytes);
      add_tile_product<1, 4, 7>();
      load_tile<5>(a + kHalf * p.a_row, a_bytes);
      add_tile_product<2, 5, 6>();
      add_tile_product<3, 5, 7>();
    }
  }
  store_tile<0>(upper, c_bytes);
  store_tile<1>(upper + kHalf, c_bytes);
  store_tile<2>(lower, c_bytes);
  store_tile<3>(lower + kHalf, c_bytes);
}

}  // namespace

TileRegisters::TileRegisters() {
  static const TileShapes shapes;
  asm volatile("ldtilecfg %0" : : "m"(shapes));
}

TileRegisters::~TileRegisters() { asm volatile("tilerelease"); }

void multiply_tiles(const TileProduct& product, int64_t rows) {
  ZAYA_REQUIRE(rows % TileProduct::kRows == 0);
  for (int64_t row = 0; row < rows; row += TileProduct::kRows) multiply_rows(product, row);
}

#else

TileRegisters::TileRegisters() = default;
TileRegisters::~TileRegisters() = default;
void multiply_tiles(const TileProduct&, int64_t) { ZAYA_REQUIRE(false); }

#endif

}  // namespace zaya
