#include <algorithm>
#include <array>
#include <span>

#include "backend/cpu/gemm.h"
#include "backend/cpu/threads.h"
#include "ops/optim/symmetric.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optim/symmetric_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"
#include "core/ceil_div.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// Blocks of 16: a row of one is a cache line, so the mirrored side is written in whole lines. (Rows
// are often a power of two apart, where a cache holds few lines at a time.)
constexpr int64_t kBlock = 16;

// to = from^T, both [16, 16] dense.
HWY_INLINE void transpose_block(float* HWY_RESTRICT to, const float* HWY_RESTRICT from) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < kBlock; ++i) {
    for (int64_t j = 0; j < kBlock; ++j) to[j * kBlock + i] = from[i * kBlock + j];
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto wide = [&](auto v) { return hn::BitCast(pairs, v); };
  for (int64_t i = 0; i < kBlock; i += 4) {
    for (int64_t j = 0; j < kBlock; j += 4) {
      const float* at = from + i * kBlock + j;
      const auto r0 = hn::Load(d, at), r1 = hn::Load(d, at + kBlock);
      const auto r2 = hn::Load(d, at + 2 * kBlock), r3 = hn::Load(d, at + 3 * kBlock);
      const auto low01 = wide(hn::InterleaveLower(d, r0, r1));
      const auto low23 = wide(hn::InterleaveLower(d, r2, r3));
      const auto high01 = wide(hn::InterleaveUpper(d, r0, r1));
      const auto high23 = wide(hn::InterleaveUpper(d, r2, r3));
      float* out = to + j * kBlock + i;
      hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, out);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, out + kBlock);
      hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, out + 2 * kBlock);
      hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, out + 3 * kBlock);
    }
  }
#endif
}

// The mirror image in `out` of what value() makes of the block of c at (row, column), in the lower
// half.
template <class Out, class F>
HWY_INLINE void mirror_block(Out* out, float* c, int64_t size, int64_t row, int64_t column,
                             F&& value) {
  const hn::CappedTag<float, kBlock> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float block[kBlock * kBlock];
  HWY_ALIGN float turned[kBlock * kBlock];
  for (int64_t i = 0; i < kBlock; ++i) {
    float* from = c + (row + i) * size + column;
    for (int64_t j = 0; j < kBlock; j += lanes) {
      const auto v = value(d, from + j, row + i, column + j);
      hn::Store(v, d, block + i * kBlock + j);
    }
  }
  transpose_block(turned, block);
  for (int64_t j = 0; j < kBlock; ++j) {
    Out* to = out + (column + j) * size + row;
    if (row == column) {
      for (int64_t i = j + 1; i < kBlock; ++i) to[i] = Out(turned[j * kBlock + i]);
    } else {
      for (int64_t i = 0; i < kBlock; i += lanes)
        store(hn::Load(d, turned + j * kBlock + i), d, to + i);
    }
  }
}

// Of rows [begin, end) of c's lower half, the columns of `out` that mirror them. begin: a multiple
// of 16. value(d, at, i, j): the lanes of c at `at`, row i and columns from j on, as they are to
// be; it stores them in the lower half of `out` itself, where they are not there already.
template <class Out, class F>
HWY_INLINE void mirror(Out* out, float* c, int64_t size, int64_t begin, int64_t end, F&& value) {
  const int64_t blocks_end = end - (end - begin) % kBlock;
  for (int64_t column = 0; column < blocks_end; column += kBlock) {
    for (int64_t row = std::max(begin, column); row < blocks_end; row += kBlock)
      mirror_block(out, c, size, row, column, value);
  }
  const OneTag one;
  for (int64_t i = blocks_end; i < end; ++i) {
    for (int64_t j = 0; j <= i; ++j)
      store(value(one, c + i * size + j, i, j), one, out + j * size + i);
  }
}

void mirror_rows(float* c, int64_t size, int64_t begin, int64_t end) {
  mirror(c, c, size, begin, end,
         [](auto d, float* at, int64_t, int64_t) { return hn::LoadU(d, at); });
}

// p: the lower half of g g, which becomes all of a I + b g + c g g.
void quadratic_rows(float* p, const float* g, int64_t size, int64_t begin, int64_t end,
                    const Quadratic& q) {
  mirror(p, p, size, begin, end, [&](auto d, float* at, int64_t i, int64_t j) {
    const auto linear = hn::Mul(hn::Set(d, q.b), hn::LoadU(d, g + i * size + j));
    const auto sum = hn::MulAdd(hn::Set(d, q.c), hn::LoadU(d, at), linear);
    hn::StoreU(sum, d, at);
    return sum;
  });
  for (int64_t i = begin; i < end; ++i) p[i * size + i] += q.a;
}

// rounded, whole = round * c, of which the lower half is given and left as keep * c.
void round_rows(bf16* rounded, float* c, int64_t size, int64_t begin, int64_t end, float round,
                float keep) {
  mirror(rounded, c, size, begin, end, [&](auto d, float* at, int64_t i, int64_t j) {
    const auto sum = hn::LoadU(d, at);
    const auto value = hn::Mul(hn::Set(d, round), sum);
    store(value, d, rounded + i * size + j);
    hn::StoreU(hn::Mul(hn::Set(d, keep), sum), d, at);
    return value;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(mirror_rows);
HWY_EXPORT(quadratic_rows);
HWY_EXPORT(round_rows);

// The lower half is computed in strips of 256 rows that end where their block on the diagonal
// begins, and those blocks in four strips each that end where the diagonal does: large tiles are
// fastest, thin ones waste little above the diagonal (1/16 of the whole product at 512 rows).
constexpr int64_t kMaxStrips = 16;
constexpr int64_t kCuts = 4;  // of a block on the diagonal

// c = the products that piece(rows, columns) names, each [begin, end).
struct Range {
  int64_t begin, end;
};
template <class F>
void lower_half(const Tensor& c, F&& piece) {
  std::array<Gemm, kMaxStrips*(1 + kCuts)> pieces;
  size_t count = 0;
  const auto add = [&](const Range& rows, const Range& columns) {
    pieces[count] = piece(rows, columns);
    pieces[count++].c = c.row_range(rows.begin, rows.end).column_range(columns.begin, columns.end);
  };
  const int64_t size = c.rows();
  const int64_t cut = std::max<int64_t>(64, round_up(ceil_div(size, kMaxStrips * kCuts), 16));
  const int64_t strip = kCuts * cut, last = (size - 1) / strip * strip;
  // The largest first: threads then end at about the same time.
  for (int64_t begin = last; begin > 0; begin -= strip)
    add({begin, std::min(size, begin + strip)}, {0, begin});
  for (int64_t k = kCuts - 1; k >= 0; --k) {
    for (int64_t block = 0; block + k * cut < size; block += strip) {
      const int64_t begin = block + k * cut, end = std::min(size, begin + cut);
      add({begin, end}, {block, end});
    }
  }
  gemm_batch(std::span(pieces.data(), count));
}

// f(begin, end) for pieces of the rows, those with the most below the diagonal first.
template <class F>
void parallel_rows(int64_t size, F&& f) {
  constexpr int64_t kRows = 64;
  const int64_t pieces = ceil_div(size, kRows);
  parallel_for(pieces, [&](int64_t i) {
    const int64_t begin = (pieces - 1 - i) * kRows;
    f(begin, std::min(size, begin + kRows));
  });
}

void mirror_lower(const Tensor& c) {
  parallel_rows(c.rows(), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(mirror_rows)(c.as<float>(), c.rows(), begin, end);
  });
}

// c = a b, or c += a b.
void lower_product(const Tensor& c, const Tensor& a, const Tensor& b, bool accumulate = false) {
  // b is its own transpose, and whole rows of it are dense.
  lower_half(c, [&](const Range& rows, const Range& columns) {
    return Gemm{.c = {},
                .a = a.row_range(rows.begin, rows.end),
                .b = b.row_range(columns.begin, columns.end),
                .transpose_b = true,
                .accumulate = accumulate};
  });
}

void lower_gram(const Tensor& c, const Tensor& x, bool tall) {
  lower_half(c, [&](const Range& rows, const Range& columns) {
    const auto part = [&](const Range& r) {
      return tall ? x.column_range(r.begin, r.end) : x.row_range(r.begin, r.end);
    };
    return Gemm{
        .c = {}, .a = part(rows), .b = part(columns), .transpose_a = tall, .transpose_b = !tall};
  });
}

void round_lower(const Tensor& rounded, const Tensor& c, float round, float keep) {
  parallel_rows(c.rows(), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(round_rows)
    (rounded.as<bf16>(), c.as<float>(), c.rows(), begin, end, round, keep);
  });
}

}  // namespace

void gram_product(const Tensor& c, const Tensor& x, bool tall) {
  lower_gram(c, x, tall);
  mirror_lower(c);
}

void commuting_product(const Tensor& c, const Tensor& a, const Tensor& b) {
  lower_product(c, a, b);
  mirror_lower(c);
}

void quadratic(const Tensor& c, const Tensor& g, const Quadratic& coefficients) {
  lower_product(c, g, g);
  parallel_rows(c.rows(), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(quadratic_rows)
    (c.as<float>(), g.as<float>(), c.rows(), begin, end, coefficients);
  });
}

void gram_polynomial(const Tensor& p, const Tensor& sums, const Tensor& x, bool tall, float b,
                     float c) {
  lower_gram(sums, x, tall);
  round_lower(p, sums, 1, b / c);
  lower_product(sums, p, p, true);  // b / c g + g g
  round_lower(p, sums, c, 1);
}

}  // namespace zaya
#endif
