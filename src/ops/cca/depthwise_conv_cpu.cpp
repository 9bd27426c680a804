#include "backend/cpu/threads.h"
#include "ops/cca/depthwise_conv.h"
#include "ops/cca/lead_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cca/depthwise_conv_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

constexpr int64_t kRowsPerItem = 64;
constexpr int64_t kStripChannels = 64;
// Rows summed in registers before they are added to a gradient: short sums lose fewer bits.
constexpr int64_t kRowsPerSum = 128;

struct Size {
  LeadRows rows;
  int64_t channels = 0;
  int64_t taps = 0;

  int64_t history_rows() const { return taps - 1 + rows.lead; }
};

// weight [C, K0] as [K0, C], so that a vector of channels has a vector of weights.
const float* transpose_weight(const float* weight, const Size& size) {
  struct Tag;
  float* by_tap = thread_buffer<Tag, float>(size.taps * size.channels);
  for (int64_t i = 0; i < size.taps; ++i)
    for (int64_t c = 0; c < size.channels; ++c)
      by_tap[i * size.channels + c] = weight[c * size.taps + i];
  return by_tap;
}

// One output row. Taps [0, before) read older rows (nothing when null), the others `in`.
template <class T>
void convolve_row(T* out, const T* older, int64_t before, const T* in, const float* weight,
                  const float* bias, const Size& size) {
  const int64_t C = size.channels, taps = size.taps;
  const int64_t first = older != nullptr ? 0 : before;
  for_each_vector(C, [&](auto d, int64_t c) {
    auto sum = load(d, bias + c);
    for (int64_t i = first; i < before; ++i)
      sum = hn::MulAdd(load(d, weight + i * C + c), load(d, older + i * C + c), sum);
    for (int64_t i = before; i < taps; ++i)
      sum = hn::MulAdd(load(d, weight + i * C + c), load(d, in + (i - before) * C + c), sum);
    store(sum, d, out + c);
  });
}

template <class T>
void forward(T* out, const T* in, const T* history, const float* weight, const float* bias,
             const Size& size) {
  const float* by_tap = transpose_weight(weight, size);
  const int64_t C = size.channels, past = size.history_rows();
  parallel_ranges(size.rows.count(), kRowsPerItem, [&](int64_t begin, int64_t end) {
    size.rows.for_each_run(begin, end, [&](int64_t s, int64_t r0, int64_t r1) {
      const T* in_s = in + size.rows.sequences.begin(s) * C;
      for (int64_t r = r0; r < r1; ++r) {
        const int64_t oldest =
            r - past;  // the token that tap 0 reads; negative: before the sequence
        const int64_t before = std::min(std::max<int64_t>(-oldest, 0), size.taps);
        const T* older = history != nullptr ? history + (s * past + r) * C : nullptr;
        convolve_row(out + (size.rows.begin(s) + r) * C, older, before,
                     in_s + std::max<int64_t>(oldest, 0) * C, by_tap, bias, size);
      }
    });
  });
}

// din[t] gathers from every output row that read token t.
template <class T>
void backward_input(T* din, const float* other, const float* dout, const float* weight,
                    const Size& size) {
  const float* by_tap = transpose_weight(weight, size);
  const int64_t C = size.channels, taps = size.taps;
  const LeadRows tokens{size.rows.sequences, 0};
  parallel_ranges(tokens.count(), kRowsPerItem, [&](int64_t begin, int64_t end) {
    tokens.for_each_run(begin, end, [&](int64_t s, int64_t t0, int64_t t1) {
      for (int64_t t = t0; t < t1; ++t) {
        const int64_t first = std::max<int64_t>(0, t + taps - tokens.length(s));
        const float* newest = dout + (size.rows.begin(s) + size.rows.lead + t + taps - 1) * C;
        const int64_t row = (tokens.begin(s) + t) * C;
        for_each_vector(C, [&](auto d, int64_t c) {
          auto sum = load(d, other + row + c);
          for (int64_t i = first; i < taps; ++i)
            sum = hn::MulAdd(load(d, by_tap + i * C + c), load(d, newest - i * C + c), sum);
          store(sum, d, din + row + c);
        });
      }
    });
  });
}

// Adds rows [r0, r1) of sequence s to the strip's sums [taps + 1][strip], the bias last.
template <class T>
void add_weight_gradient(float* sums, const float* dout, const T* in, int64_t s, int64_t r0,
                         int64_t r1, int64_t c0, int64_t width, const Size& size) {
  const int64_t C = size.channels, past = size.history_rows();
  const float* dout_s = dout + size.rows.begin(s) * C + c0;
  const T* in_s = in + size.rows.sequences.begin(s) * C + c0;
  for_each_vector(width, [&](auto d, int64_t c) {
    for (int64_t i = 0; i < size.taps; ++i) {
      auto sum = hn::Zero(d);
      for (int64_t r = std::max(r0, past - i); r < r1; ++r)
        sum = hn::MulAdd(load(d, dout_s + r * C + c), load(d, in_s + (r - past + i) * C + c), sum);
      float* total = sums + i * kStripChannels + c;
      store(hn::Add(load(d, total), sum), d, total);
    }
    auto sum = hn::Zero(d);
    for (int64_t r = r0; r < r1; ++r) sum = hn::Add(sum, load(d, dout_s + r * C + c));
    float* total = sums + size.taps * kStripChannels + c;
    store(hn::Add(load(d, total), sum), d, total);
  });
}

template <class T>
void backward_weight(float* dweight, float* dbias, const float* dout, const T* in,
                     const Size& size) {
  const int64_t taps = size.taps;
  parallel_ranges(size.channels, kStripChannels, [&](int64_t c0, int64_t c1) {
    struct Tag;
    float* sums = thread_buffer<Tag, float>((taps + 1) * kStripChannels);
    std::fill(sums, sums + (taps + 1) * kStripChannels, 0.0f);
    for (int64_t s = 0; s < size.rows.sequences.count(); ++s)
      for (int64_t r = 0; r < size.rows.length(s); r += kRowsPerSum)
        add_weight_gradient(sums, dout, in, s, r, std::min(r + kRowsPerSum, size.rows.length(s)),
                            c0, c1 - c0, size);
    for (int64_t c = c0; c < c1; ++c) {
      for (int64_t i = 0; i < taps; ++i) dweight[c * taps + i] += sums[i * kStripChannels + c - c0];
      dbias[c] += sums[taps * kStripChannels + c - c0];
    }
  });
}

Size size_of_conv(const Tensor& in, const Tensor& weight, Ragged sequences, int64_t lead) {
  ZAYA_REQUIRE(lead >= 0 && in.contiguous() && weight.contiguous());
  ZAYA_REQUIRE(in.rows() == sequences.tokens() && weight.shape[0] == in.columns());
  return {{sequences, lead}, in.columns(), weight.columns()};
}

void forward_op(const Tensor& out, const Tensor& in, const Tensor& history, const Tensor& weight,
                const Tensor& bias, Ragged sequences, int64_t lead) {
  const Size size = size_of_conv(in, weight, sequences, lead);
  ZAYA_REQUIRE(out.contiguous() && out.size() == size.rows.count() * size.channels);
  ZAYA_REQUIRE(bias.size() == size.channels);
  ZAYA_REQUIRE(!history ||
               (history.contiguous() &&
                history.size() == sequences.count() * size.history_rows() * size.channels));
  visit_activation(in.dtype, [&]<class T>() {
    forward(out.as<T>(), in.as<T>(), history ? history.as<T>() : nullptr, weight.as<float>(),
            bias.as<float>(), size);
  });
}

void backward_op(const Tensor& din, const Tensor& dweight, const Tensor& dbias, const Tensor& other,
                 const Tensor& dout, const Tensor& in, const Tensor& weight, Ragged sequences,
                 int64_t lead) {
  const Size size = size_of_conv(in, weight, sequences, lead);
  ZAYA_REQUIRE(dout.contiguous() && dout.size() == size.rows.count() * size.channels);
  ZAYA_REQUIRE(din.contiguous() && din.size() == in.size() && din.dtype == in.dtype);
  ZAYA_REQUIRE(other.contiguous() && other.size() == in.size());
  ZAYA_REQUIRE(dweight.contiguous() && dweight.size() == weight.size());
  ZAYA_REQUIRE(dbias.size() == size.channels);
  visit_activation(in.dtype, [&]<class T>() {
    backward_input(din.as<T>(), other.as<float>(), dout.as<float>(), weight.as<float>(), size);
    backward_weight(dweight.as<float>(), dbias.as<float>(), dout.as<float>(), in.as<T>(), size);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {

HWY_EXPORT(forward_op);
HWY_EXPORT(backward_op);

void depthwise_conv_forward(Context&, const Tensor& out, const Tensor& in, const Tensor& history,
                            const Tensor& weight, const Tensor& bias, Ragged sequences,
                            int64_t lead) {
  HWY_DYNAMIC_DISPATCH(forward_op)(out, in, history, weight, bias, sequences, lead);
}

void depthwise_conv_backward(Context&, const Tensor& din, const Tensor& dweight,
                             const Tensor& dbias, const Tensor& other, const Tensor& dout,
                             const Tensor& in, const Tensor& weight, Ragged sequences,
                             int64_t lead) {
  HWY_DYNAMIC_DISPATCH(backward_op)
  (din, dweight, dbias, other, dout, in, weight, sequences, lead);
}

}  // namespace zaya
#endif
