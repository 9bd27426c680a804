// Every window of K1 consecutive rows is computed, also those that straddle two sequences and
// belong to no token, so that a batch of many short sequences costs no more products than one long
// sequence. The products of the stray windows are dropped (forward) or multiplied by zero
// (backward).

#include <cstring>

#include "backend/cpu/gemm.h"
#include "backend/cpu/threads.h"
#include "ops/cca/grouped_conv.h"
#include "ops/cca/lead_rows.h"

namespace zaya {
namespace {

constexpr int64_t kWindowsPerItem = 192;  // a multiple of gemm's row tile
constexpr int64_t kStripChannels = 64;
// Rows summed before they are added to a bias gradient: short sums lose fewer bits.
constexpr int64_t kRowsPerSum = 128;

struct Size {
  LeadRows rows;
  int64_t channels = 0;
  int64_t group = 0;  // d, channels of a group
  int64_t taps = 0;

  int64_t groups() const { return channels / group; }
  // Windows start at rows [0, windows()); those that start in a sequence's first length(s) - lead
  // rows are tokens.
  int64_t windows() const { return std::max<int64_t>(0, rows.count() - (taps - 1)); }
};

Tensor columns_of_group(const Tensor& x, int64_t row, int64_t rows, int64_t g, const Size& size) {
  return x.row_range(row, row + rows).column_range(g * size.group, (g + 1) * size.group);
}

// weight [C, d, K1] as one [C, d] matrix per tap, rounded to T and then held as To.
template <class T, class To>
Tensor pack_weight(const Tensor& weight, const Size& size) {
  struct Tag;
  To* packed = thread_buffer<Tag, To>(weight.size());
  const float* from = weight.as<float>();
  const int64_t taps = size.taps;
  parallel_for(size.groups(), [&](int64_t g) {
    const int64_t matrix = size.channels * size.group, part = size.group * size.group;
    for (int64_t i = 0; i < taps; ++i)
      for (int64_t e = g * part; e < (g + 1) * part; ++e)
        packed[i * matrix + e] = static_cast<To>(static_cast<float>(T(from[e * taps + i])));
  });
  return Tensor(packed, DTypeOf<To>::value, {taps * size.channels, size.group});
}

// The d x d matrix of one tap and group.
Tensor packed_matrix(const Tensor& packed, int64_t tap, int64_t g, const Size& size) {
  const int64_t row = tap * size.channels + g * size.group;
  return packed.row_range(row, row + size.group);
}

// f(scratch_row, token, count) for each stretch of windows [begin, end) that are tokens.
template <class F>
void for_each_token_run(const Size& size, int64_t begin, int64_t end, F&& f) {
  size.rows.for_each_run(begin, end, [&](int64_t s, int64_t r0, int64_t r1) {
    r1 = std::min(r1, size.rows.sequences.length(s));
    if (r0 < r1) f(size.rows.begin(s) + r0 - begin, size.rows.sequences.begin(s) + r0, r1 - r0);
  });
}

// Group g of dout for windows [begin, end), which may reach outside [0, windows()): zero where a
// window is no token.
Tensor gather_dout(const Tensor& dout, int64_t g, int64_t begin, int64_t end, const Size& size) {
  struct Tag;
  const int64_t d = size.group;
  float* rows = thread_buffer<Tag, float>((end - begin) * d);
  std::fill(rows, rows + (end - begin) * d, 0.0f);
  const int64_t first = std::max<int64_t>(begin, 0), last = std::min(end, size.windows());
  for_each_token_run(size, first, last, [&](int64_t row, int64_t t, int64_t count) {
    float* to = rows + (row + first - begin) * d;
    for (int64_t r = 0; r < count; ++r)
      std::memcpy(to + r * d, dout.row<float>(t + r) + g * d, d * sizeof(float));
  });
  return Tensor(rows, DType::f32, {end - begin, d});
}

void forward_item(const Tensor& out, const Tensor& in, const Tensor& packed, const float* bias,
                  int64_t g, int64_t begin, int64_t end, const Size& size) {
  struct Tag;
  const int64_t d = size.group, n = end - begin;
  const Tensor sums(thread_buffer<Tag, float>(n * d), DType::f32, {n, d});
  for (int64_t i = 0; i < size.taps; ++i)
    gemm({.c = sums,
          .a = columns_of_group(in, begin + i, n, g, size),
          .b = packed_matrix(packed, i, g, size),
          .transpose_b = true,
          .accumulate = i > 0});
  for_each_token_run(size, begin, end, [&](int64_t row, int64_t t, int64_t count) {
    for (int64_t r = 0; r < count; ++r) {
      const float* from = sums.row<float>(row + r);
      float* to = out.row<float>(t + r) + g * d;
      for (int64_t c = 0; c < d; ++c) to[c] = from[c] + bias[g * d + c];
    }
  });
}

// Input row r was read by windows r - K1 + 1 (as its last tap) to r (as its first).
void backward_input_item(const Tensor& din, const Tensor& dout, const Tensor& packed, int64_t g,
                         int64_t begin, int64_t end, const Size& size) {
  const int64_t n = end - begin, lead = size.taps - 1;
  const Tensor windows = gather_dout(dout, g, begin - lead, end, size);
  for (int64_t i = 0; i < size.taps; ++i)
    gemm({.c = columns_of_group(din, begin, n, g, size),
          .a = windows.row_range(lead - i, lead - i + n),
          .b = packed_matrix(packed, i, g, size),
          .accumulate = i > 0});
}

void backward_weight_item(float* dweight, const Tensor& dout, const Tensor& in, int64_t g,
                          int64_t tap, const Size& size) {
  struct Tag;
  const int64_t d = size.group, taps = size.taps;
  const Tensor sum(thread_buffer<Tag, float>(d * d), DType::f32, {d, d});
  for (int64_t begin = 0; begin < size.windows(); begin += kWindowsPerItem) {
    const int64_t end = std::min(begin + kWindowsPerItem, size.windows());
    gemm({.c = sum,
          .a = gather_dout(dout, g, begin, end, size),
          .b = columns_of_group(in, begin + tap, end - begin, g, size),
          .transpose_a = true,
          .accumulate = begin > 0});
  }
  const float* from = sum.as<float>();
  for (int64_t e = 0; e < d * d; ++e) dweight[(g * d * d + e) * taps + tap] += from[e];
}

void backward_bias(float* dbias, const Tensor& dout, const Size& size) {
  parallel_ranges(size.channels, kStripChannels, [&](int64_t c0, int64_t c1) {
    for (int64_t t0 = 0; t0 < dout.rows(); t0 += kRowsPerSum) {
      float sums[kStripChannels] = {};
      for (int64_t t = t0; t < std::min(t0 + kRowsPerSum, dout.rows()); ++t) {
        const float* row = dout.row<float>(t) + c0;
        for (int64_t c = 0; c < c1 - c0; ++c) sums[c] += row[c];
      }
      for (int64_t c = c0; c < c1; ++c) dbias[c] += sums[c - c0];
    }
  });
}

// f(g, begin, end) for every group and every piece of [0, rows).
template <class F>
void for_each_piece(int64_t rows, const Size& size, F&& f) {
  const int64_t pieces = (rows + kWindowsPerItem - 1) / kWindowsPerItem;
  parallel_for(pieces * size.groups(), [&](int64_t item) {
    const int64_t begin = item / size.groups() * kWindowsPerItem;
    f(item % size.groups(), begin, std::min(begin + kWindowsPerItem, rows));
  });
}

Size size_of_conv(const Tensor& in, const Tensor& weight, const Tensor& token_rows,
                  Ragged sequences) {
  ZAYA_REQUIRE(weight.shape.rank() == 3 && weight.contiguous());
  const Size size{
      {sequences, weight.shape[2] - 1}, weight.shape[0], weight.shape[1], weight.shape[2]};
  ZAYA_REQUIRE(size.taps > 0 && size.group > 0 && size.channels % size.group == 0);
  ZAYA_REQUIRE(in.contiguous() && in.size() == size.rows.count() * size.channels);
  ZAYA_REQUIRE(token_rows.dtype == DType::f32 && token_rows.contiguous() &&
               token_rows.size() == sequences.tokens() * size.channels);
  return size;
}

}  // namespace

void grouped_conv_forward(Context&, const Tensor& out, const Tensor& in, const Tensor& weight,
                          const Tensor& bias, Ragged sequences) {
  const Size size = size_of_conv(in, weight, out, sequences);
  ZAYA_REQUIRE(bias.size() == size.channels);
  visit_activation(in.dtype, [&]<class T>() {
    const Tensor packed = pack_weight<T, T>(weight, size);
    for_each_piece(size.windows(), size, [&](int64_t g, int64_t begin, int64_t end) {
      forward_item(out, in, packed, bias.as<float>(), g, begin, end, size);
    });
  });
}

void grouped_conv_backward(Context&, const Tensor& din, const Tensor& dweight, const Tensor& dbias,
                           const Tensor& dout, const Tensor& in, const Tensor& weight,
                           Ragged sequences) {
  const Size size = size_of_conv(in, weight, dout, sequences);
  ZAYA_REQUIRE(din.dtype == DType::f32 && din.contiguous() && din.size() == in.size());
  ZAYA_REQUIRE(dweight.contiguous() && dweight.size() == weight.size());
  ZAYA_REQUIRE(dbias.size() == size.channels);
  visit_activation(in.dtype, [&]<class T>() {
    const Tensor packed = pack_weight<T, float>(weight, size);
    for_each_piece(size.rows.count(), size, [&](int64_t g, int64_t begin, int64_t end) {
      backward_input_item(din, dout, packed, g, begin, end, size);
    });
  });
  if (size.windows() > 0)
    parallel_for(size.groups() * size.taps, [&](int64_t item) {
      backward_weight_item(dweight.as<float>(), dout, in, item / size.taps, item % size.taps, size);
    });
  backward_bias(dbias.as<float>(), dout, size);
}

}  // namespace zaya
