// Each group is one matrix product: a row holds the K1 inputs of a window side by side, and meets
// the d x (K1 d) filter. Every window of K1 consecutive rows is computed, also those that straddle
// two sequences and belong to no token, so that a batch of many short sequences costs no more
// products than one long sequence. The products of the stray windows are dropped (forward) or
// multiplied by zero (backward).
#include <cstring>
#include <type_traits>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/matmul_kernel.h"
#include "backend/cpu/threads.h"
#include "core/ceil_div.h"
#include "ops/cca/grouped_conv.h"
#include "ops/cca/grouped_conv_rows.h"
#include "ops/cca/lead_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cca/grouped_conv_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

constexpr int64_t kRows = 256;  // windows or rows of one product
// Sums that the gradient of a group's filter is cut into: a long batch needs no more memory.
constexpr int64_t kMostParts = 16;

struct Size {
  LeadRows rows;
  int64_t channels = 0;
  int64_t group = 0;  // d, channels of a group
  int64_t taps = 0;

  int64_t groups() const { return channels / group; }
  int64_t width() const { return taps * group; }  // of a window's inputs
  // Windows start at rows [0, windows()); those that start in a sequence's first length(s) - lead
  // rows are tokens.
  int64_t windows() const { return std::max<int64_t>(0, rows.count() - (taps - 1)); }
  int64_t pieces() const { return ceil_div(rows.count(), kRows); }
  int64_t pieces_of_part() const { return ceil_div(pieces(), kMostParts); }
  int64_t parts() const { return pieces() > 0 ? ceil_div(pieces(), pieces_of_part()) : 0; }
};

template <class To, class From>
void copy(To* to, const From* from, int64_t n) {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, from, n * sizeof(To));
  } else {
    for_each_vector(n, [&](auto d, int64_t i) { store(load(d, from + i), d, to + i); });
  }
}

// f(item_row, token, count) for each stretch of windows [begin, end) that are tokens; windows
// outside [0, windows()) are none.
template <class F>
void for_each_token_run(const Size& size, int64_t begin, int64_t end, F&& f) {
  const int64_t first = std::max<int64_t>(begin, 0), last = std::min(end, size.windows());
  size.rows.for_each_run(first, last, [&](int64_t s, int64_t r0, int64_t r1) {
    r1 = std::min(r1, size.rows.sequences.length(s));
    if (r0 < r1) f(size.rows.begin(s) + r0 - begin, size.rows.sequences.begin(s) + r0, r1 - r0);
  });
}

// weight [C, d, K1], rounded to T, as the operand of the products: a matrix of K1 d d a group,
// where place(o, c, i) is the element of output o, input c and tap i.
template <class T, class In, class F>
const In* pack_filters(const float* weight, const Size& size, F&& place) {
  struct Tag;
  const int64_t d = size.group, taps = size.taps;
  In* packed = thread_buffer<Tag, In>(size.channels * size.width());
  parallel_for(size.groups(), [&](int64_t g) {
    for (int64_t o = 0; o < d; ++o)
      for (int64_t c = 0; c < d; ++c)
        for (int64_t i = 0; i < taps; ++i)
          packed[g * d * size.width() + place(o, c, i)] =
              In(static_cast<float>(T(weight[((g * d + o) * d + c) * taps + i])));
  });
  return packed;
}

// The inputs of windows [begin, end) in group g, [padded_rows, K1 d]; zero past the last window.
template <class In, class T>
In* gather_windows(const Tensor& in, int64_t g, int64_t begin, int64_t end, int64_t padded_rows,
                   const Size& size) {
  struct Tag;
  const int64_t d = size.group, width = size.width();
  In* rows = thread_buffer<Tag, In>(padded_rows * width);
  const int64_t count = std::max<int64_t>(0, std::min(end, size.windows()) - begin);
  for (int64_t w = 0; w < count; ++w)
    for (int64_t i = 0; i < size.taps; ++i)
      copy(rows + w * width + i * d, in.row<T>(begin + w + i) + g * d, d);
  std::fill(rows + count * width, rows + padded_rows * width, In());
  return rows;
}

template <class T, class In>
void forward_item(const Tensor& out, const Tensor& in, const In* filters, const float* bias,
                  int64_t g, int64_t begin, int64_t end, const Size& size) {
  struct Tag;
  const int64_t d = size.group, rows = uniform_rows(end - begin);
  float* sums = thread_buffer<Tag, float>(rows * d);
  matmul({.m = rows, .n = d, .k = size.width(), .transpose_b = true, .in = DTypeOf<In>::value},
         sums, gather_windows<In, T>(in, g, begin, end, rows, size),
         filters + g * d * size.width());
  for_each_token_run(size, begin, end, [&](int64_t row, int64_t t, int64_t count) {
    for (int64_t r = 0; r < count; ++r) {
      const float* from = sums + (row + r) * d;
      float* to = out.row<float>(t + r) + g * d;
      for_each_vector(d, [&](auto tag, int64_t c) {
        store(hn::Add(load(tag, from + c), load(tag, bias + g * d + c)), tag, to + c);
      });
    }
  });
}

// The gradients that the input rows of one item and its windows give to the filter and the bias:
// dweight [d, K1 d], dbias [d].
struct Part {
  float* dweight;
  float* dbias;
};

// din of rows [begin, end): row r was read by windows r - K1 + 1 (as its last input) to r (as its
// first).
template <class In>
void backward_input_item(const Tensor& din, const Tensor& dout, const In* filters, int64_t g,
                         int64_t begin, int64_t end, const Size& size) {
  struct Rows;
  struct Sums;
  const int64_t d = size.group, width = size.width(), rows = uniform_rows(end - begin);
  In* readers = thread_buffer<Rows, In>(rows * width);  // dout of each row's windows side by side
  float* sums = thread_buffer<Sums, float>(rows * d);
  std::fill(readers, readers + rows * width, In());
  for (int64_t i = 0; i < size.taps; ++i)
    for_each_token_run(size, begin - i, end - i, [&](int64_t row, int64_t t, int64_t count) {
      for (int64_t r = 0; r < count; ++r)
        copy(readers + (row + r) * width + i * d, dout.row<float>(t + r) + g * d, d);
    });
  matmul({.m = rows, .n = d, .k = width, .in = DTypeOf<In>::value}, sums, readers,
         filters + g * d * width);
  for (int64_t r = begin; r < end; ++r) copy(din.row<float>(r) + g * d, sums + (r - begin) * d, d);
}

// `started`: the part holds the sums of earlier windows.
template <class T, class In>
void backward_weight_item(const Part& part, bool started, const Tensor& dout, const Tensor& in,
                          int64_t g, int64_t begin, int64_t end, const Size& size) {
  struct Tag;
  const int64_t d = size.group;
  In* douts = thread_buffer<Tag, In>(kRows * d);
  std::fill(douts, douts + kRows * d, In());
  if (!started) std::fill(part.dbias, part.dbias + d, 0.0f);
  for_each_token_run(size, begin, end, [&](int64_t row, int64_t t, int64_t count) {
    for (int64_t r = 0; r < count; ++r) {
      const float* from = dout.row<float>(t + r) + g * d;
      copy(douts + (row + r) * d, from, d);
      for_each_vector(d, [&](auto tag, int64_t c) {
        store(hn::Add(load(tag, part.dbias + c), load(tag, from + c)), tag, part.dbias + c);
      });
    }
  });
  matmul({.m = d,
          .n = size.width(),
          .k = kRows,
          .transpose_a = true,
          .in = DTypeOf<In>::value,
          .accumulate = started},
         part.dweight, douts, gather_windows<In, T>(in, g, begin, end, kRows, size));
}

// Adds a group's parts, in their order, to the gradients.
void add_parts(float* dweight, float* dbias, const float* parts, int64_t part_size, int64_t g,
               const Size& size) {
  struct Tag;
  const int64_t d = size.group, taps = size.taps;
  float* sums = thread_buffer<Tag, float>(part_size);
  std::fill(sums, sums + part_size, 0.0f);
  for (int64_t p = 0; p < size.parts(); ++p) {
    const float* part = parts + (g * size.parts() + p) * part_size;
    for_each_vector(part_size, [&](auto tag, int64_t i) {
      store(hn::Add(load(tag, sums + i), load(tag, part + i)), tag, sums + i);
    });
  }
  for (int64_t o = 0; o < d; ++o) {
    for (int64_t i = 0; i < taps; ++i)
      for (int64_t c = 0; c < d; ++c)
        dweight[((g * d + o) * d + c) * taps + i] += sums[(o * taps + i) * d + c];
    dbias[g * d + o] += sums[d * size.width() + o];
  }
}

template <class T, class In>
void forward_typed(const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias,
                   const Size& size) {
  const int64_t d = size.group, width = size.width();
  // [d outputs, K1 d inputs].
  const In* filters =
      pack_filters<T, In>(weight.as<float>(), size,
                          [=](int64_t o, int64_t c, int64_t i) { return o * width + i * d + c; });
  const int64_t windows = size.windows(), pieces = ceil_div(windows, kRows);
  parallel_for(pieces * size.groups(), [&](int64_t item) {
    const int64_t begin = item / size.groups() * kRows;
    forward_item<T>(out, in, filters, bias.as<float>(), item % size.groups(), begin,
                    std::min(begin + kRows, windows), size);
  });
}

template <class T, class In>
void backward_typed(const Tensor& din, const Tensor& dweight, const Tensor& dbias,
                    const Tensor& dout, const Tensor& in, const Tensor& weight, const Size& size) {
  struct Tag;
  const int64_t d = size.group, part_size = d * size.width() + d;
  // [K1 d outputs, d inputs].
  const In* filters =
      pack_filters<T, In>(weight.as<float>(), size,
                          [=](int64_t o, int64_t c, int64_t i) { return (i * d + o) * d + c; });
  float* parts = thread_buffer<Tag, float>(size.groups() * size.parts() * part_size);
  parallel_for(size.groups() * size.parts(), [&](int64_t item) {
    const int64_t g = item % size.groups(), p = item / size.groups();
    float* part = parts + (g * size.parts() + p) * part_size;
    const int64_t first = p * size.pieces_of_part() * kRows;
    const int64_t last = std::min(first + size.pieces_of_part() * kRows, size.rows.count());
    for (int64_t begin = first; begin < last; begin += kRows) {
      const int64_t end = std::min(begin + kRows, last);
      backward_input_item(din, dout, filters, g, begin, end, size);
      backward_weight_item<T, In>({part, part + d * size.width()}, begin > first, dout, in, g,
                                  begin, end, size);
    }
  });
  parallel_for(size.groups(), [&](int64_t g) {
    add_parts(dweight.as<float>(), dbias.as<float>(), parts, part_size, g, size);
  });
}

// f.operator()<T, In>(): T the format of the inputs, In that of the products' operands.
template <class F>
void visit_formats(DType dtype, F&& f) {
  visit_activation(dtype, [&]<class T>() {
    if (multiplied_format(DTypeOf<T>::value) == DType::bf16)
      f.template operator()<T, bf16>();
    else
      f.template operator()<T, float>();
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

void forward_op(const Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias,
                Ragged sequences) {
  const Size size = size_of_conv(in, weight, out, sequences);
  ZAYA_REQUIRE(bias.size() == size.channels);
  visit_formats(in.dtype,
                [&]<class T, class In>() { forward_typed<T, In>(out, in, weight, bias, size); });
}

void backward_op(const Tensor& din, const Tensor& dweight, const Tensor& dbias, const Tensor& dout,
                 const Tensor& in, const Tensor& weight, Ragged sequences) {
  const Size size = size_of_conv(in, weight, dout, sequences);
  ZAYA_REQUIRE(din.dtype == DType::f32 && din.contiguous() && din.size() == in.size());
  ZAYA_REQUIRE(dweight.contiguous() && dweight.size() == weight.size());
  ZAYA_REQUIRE(dbias.size() == size.channels);
  visit_formats(in.dtype, [&]<class T, class In>() {
    backward_typed<T, In>(din, dweight, dbias, dout, in, weight, size);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {

HWY_EXPORT(forward_op);
HWY_EXPORT(backward_op);

void grouped_conv_forward(Context& ctx, const Tensor& out, const Tensor& in, const Tensor& weight,
                          const Tensor& bias, Ragged sequences) {
  if (ctx.rows == Rows::apart) return grouped_conv_rows_forward(out, in, weight, bias, sequences);
  HWY_DYNAMIC_DISPATCH(forward_op)(out, in, weight, bias, sequences);
}

void grouped_conv_backward(Context&, const Tensor& din, const Tensor& dweight, const Tensor& dbias,
                           const Tensor& dout, const Tensor& in, const Tensor& weight,
                           Ragged sequences) {
  HWY_DYNAMIC_DISPATCH(backward_op)(din, dweight, dbias, dout, in, weight, sequences);
}

}  // namespace zaya
#endif
