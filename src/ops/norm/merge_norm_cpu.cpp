#include <algorithm>
#include <cmath>

#include "backend/cpu/threads.h"
#include "ops/norm/merge_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/merge_norm_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"
#include "core/ceil_div.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// Rows of one item of work: enough that a row of partial sums is little beside them, and that the
// sums of a long batch need little memory.
constexpr int64_t kFewestRows = 64, kMostItems = 256;
int64_t rows_of_item(int64_t rows) { return std::max(kFewestRows, ceil_div(rows, kMostItems)); }
// Sums that the gradients of the five vectors are made of, each [D].
constexpr int64_t kSums = 4;
constexpr int64_t kStrip = 64;  // columns of one item when they are added up

// The vectors as pointers: hidden and residual bias and scale, and the norm's weight.
struct Pointers {
  float *hb, *hs, *rb, *rs, *weight;

  Pointers(const MergeVectors& v, const Tensor& weight)
      : hb(v.hidden_bias.as<float>()),
        hs(v.hidden_scale.as<float>()),
        rb(v.residual_bias.as<float>()),
        rs(v.residual_scale.as<float>()),
        weight(weight.as<float>()) {}
};

template <class O, class H>
float forward_row(float* y, H* h, const O* o, const float* x, const Pointers& v, int64_t n,
                  float eps) {
  const float squares = reduce_sum(n, [&](auto d, int64_t i) {
    const auto hidden = hn::Mul(hn::Add(load(d, o + i), load(d, v.hb + i)), load(d, v.hs + i));
    const auto shifted = hn::Add(load(d, x + i), load(d, v.rb + i));
    const auto sum = hn::MulAdd(shifted, load(d, v.rs + i), hidden);
    store(sum, d, y + i);
    return hn::Mul(sum, sum);
  });
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto normed = hn::Mul(load(d, y + i), hn::Set(d, rstd));
    store(hn::Mul(normed, load(d, v.weight + i)), d, h + i);
  });
  return rstd;
}

// The gradient of y, with u = y * rstd:  g = dx + rstd * (dh * weight - u * mean(dh * weight * u)).
// `sums` [kSums][n] takes dh * u, g, g * (o + hidden_bias) and g * (x + residual_bias).
template <class O>
void backward_row(float* dx, O* d_o, float* sums, const float* dh, const float* y, const O* o,
                  const float* x, const Pointers& v, float rstd, int64_t n) {
  const float dot = reduce_sum(n, [&](auto d, int64_t i) {
    return hn::Mul(hn::Mul(load(d, dh + i), load(d, v.weight + i)), load(d, y + i));
  });
  const float along = dot * rstd * rstd / static_cast<float>(n);
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto stream = load(d, y + i), through_h = load(d, dh + i), scale = hn::Set(d, rstd);
    const auto across =
        hn::Sub(hn::Mul(through_h, load(d, v.weight + i)), hn::Mul(stream, hn::Set(d, along)));
    const auto g = hn::MulAdd(across, scale, load(d, dx + i));
    store(hn::Mul(g, load(d, v.hs + i)), d, d_o + i);
    store(hn::Mul(g, load(d, v.rs + i)), d, dx + i);
    const auto add = [&](int64_t which, auto value) {
      float* sum = sums + which * n + i;
      store(hn::Add(load(d, sum), value), d, sum);
    };
    add(0, hn::Mul(through_h, hn::Mul(stream, scale)));
    add(1, g);
    add(2, hn::Mul(g, hn::Add(load(d, o + i), load(d, v.hb + i))));
    add(3, hn::Mul(g, hn::Add(load(d, x + i), load(d, v.rb + i))));
  });
}

// Adds the sums of all items, in their order, to the gradients of columns [begin, end).
void add_sums(const Pointers& gradients, const Pointers& v, const float* sums, int64_t items,
              int64_t n, int64_t begin, int64_t end) {
  for_each_vector(end - begin, [&](auto d, int64_t offset) {
    const int64_t i = begin + offset;
    auto weight = hn::Zero(d), g = hn::Zero(d), hs = hn::Zero(d), rs = hn::Zero(d);
    for (int64_t item = 0; item < items; ++item) {
      const float* at = sums + item * kSums * n + i;
      weight = hn::Add(weight, load(d, at));
      g = hn::Add(g, load(d, at + n));
      hs = hn::Add(hs, load(d, at + 2 * n));
      rs = hn::Add(rs, load(d, at + 3 * n));
    }
    const auto add = [&](float* to, auto value) { store(hn::Add(load(d, to), value), d, to); };
    add(gradients.weight + i, weight);
    add(gradients.hb + i, hn::Mul(g, load(d, v.hs + i)));
    add(gradients.rb + i, hn::Mul(g, load(d, v.rs + i)));
    add(gradients.hs + i, hs);
    add(gradients.rs + i, rs);
  });
}

void forward(const Merge& m, const Tensor& h, const Tensor& rstd, const Tensor& weight, float eps) {
  const Pointers v(m.vectors, weight);
  visit_activation(m.o.dtype, [&]<class O>() {
    visit_activation(h.dtype, [&]<class H>() {
      parallel_ranges(m.x.rows(), kFewestRows, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          rstd.as<float>()[r] = forward_row(m.y.row<float>(r), h.row<H>(r), m.o.row<O>(r),
                                            m.x.row<float>(r), v, m.x.columns(), eps);
      });
    });
  });
}

void backward(const Tensor& dx, const Tensor& d_o, const MergeVectors& dvectors,
              const Tensor& dweight, const Tensor& dh, const Merge& m, const Tensor& rstd,
              const Tensor& weight) {
  struct Tag;
  const int64_t n = m.x.columns(), rows = rows_of_item(m.x.rows());
  const int64_t items = ceil_div(m.x.rows(), rows);
  const Pointers v(m.vectors, weight), gradients(dvectors, dweight);
  float* sums = thread_buffer<Tag, float>(items * kSums * n);
  visit_activation(m.o.dtype, [&]<class O>() {
    parallel_ranges(m.x.rows(), rows, [&](int64_t begin, int64_t end) {
      float* item = sums + begin / rows * kSums * n;
      std::fill(item, item + kSums * n, 0.0f);
      for (int64_t r = begin; r < end; ++r)
        backward_row(dx.row<float>(r), d_o.row<O>(r), item, dh.row<float>(r), m.y.row<float>(r),
                     m.o.row<O>(r), m.x.row<float>(r), v, rstd.as<float>()[r], n);
    });
  });
  parallel_ranges(n, kStrip, [&](int64_t begin, int64_t end) {
    add_sums(gradients, v, sums, items, n, begin, end);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);

bool same_shape(const Tensor& a, const Tensor& b) {
  return a.rows() == b.rows() && a.columns() == b.columns() && a.contiguous() && b.contiguous();
}

bool fits(const MergeVectors& v, const Tensor& weight, int64_t n) {
  for (const Tensor* t :
       {&v.hidden_bias, &v.hidden_scale, &v.residual_bias, &v.residual_scale, &weight})
    if (t->size() != n || !t->contiguous()) return false;
  return true;
}

void require_shapes(const Merge& m, const Tensor& h, const Tensor& rstd, const Tensor& weight) {
  for (const Tensor* t : {&m.y, &m.o, &h}) ZAYA_REQUIRE(same_shape(*t, m.x));
  ZAYA_REQUIRE(m.y.data != m.x.data || m.x.size() == 0);
  ZAYA_REQUIRE(fits(m.vectors, weight, m.x.columns()) && rstd.size() == m.x.rows());
}
}  // namespace

void merge_norm_forward(Context&, const Merge& merge, const Tensor& h, const Tensor& rstd,
                        const Tensor& weight, float eps) {
  require_shapes(merge, h, rstd, weight);
  HWY_DYNAMIC_DISPATCH(forward)(merge, h, rstd, weight, eps);
}

void merge_norm_backward(Context&, const Tensor& dx, const Tensor& d_o,
                         const MergeVectors& dvectors, const Tensor& dweight, const Tensor& dh,
                         const Merge& merge, const Tensor& rstd, const Tensor& weight) {
  require_shapes(merge, dh, rstd, weight);
  ZAYA_REQUIRE(same_shape(dx, merge.x) && same_shape(d_o, merge.x));
  ZAYA_REQUIRE(d_o.dtype == merge.o.dtype && fits(dvectors, dweight, merge.x.columns()));
  HWY_DYNAMIC_DISPATCH(backward)(dx, d_o, dvectors, dweight, dh, merge, rstd, weight);
}

}  // namespace zaya
#endif
