#include <algorithm>

#include "backend/cpu/threads.h"
#include "ops/norm/residual_merge.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/residual_merge_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// The four vectors as pointers: hidden and residual bias and scale.
struct Pointers {
  float *hb, *hs, *rb, *rs;

  explicit Pointers(const MergeVectors& v)
      : hb(v.hidden_bias.as<float>()),
        hs(v.hidden_scale.as<float>()),
        rb(v.residual_bias.as<float>()),
        rs(v.residual_scale.as<float>()) {}
};

template <class T>
void forward_row(float* y, const T* o, const float* x, const Pointers& v, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto hidden = hn::Mul(hn::Add(load(d, o + i), load(d, v.hb + i)), load(d, v.hs + i));
    const auto shifted = hn::Add(load(d, x + i), load(d, v.rb + i));
    store(hn::MulAdd(shifted, load(d, v.rs + i), hidden), d, y + i);
  });
}

template <class T>
void backward_row(float* dx, T* d_o, const float* dy, const Pointers& v, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto g = load(d, dy + i);
    store(hn::Mul(g, load(d, v.hs + i)), d, d_o + i);
    store(hn::Mul(g, load(d, v.rs + i)), d, dx + i);
  });
}

// Adds the gradients of the four vectors for columns [begin, end) of some rows, in their order.
template <class T>
void vectors_strip(const Pointers& dv, const Pointers& v, const float* dy, const T* o,
                   const float* x, int64_t rows, int64_t stride, int64_t begin, int64_t end) {
  for_each_vector(end - begin, [&](auto d, int64_t offset) {
    const int64_t i = begin + offset;
    const auto hb = load(d, v.hb + i), rb = load(d, v.rb + i);
    auto sum = hn::Zero(d);
    auto dhs = load(d, dv.hs + i), drs = load(d, dv.rs + i);
    for (int64_t r = 0; r < rows; ++r) {
      const auto g = load(d, dy + r * stride + i);
      sum = hn::Add(sum, g);
      dhs = hn::MulAdd(g, hn::Add(load(d, o + r * stride + i), hb), dhs);
      drs = hn::MulAdd(g, hn::Add(load(d, x + r * stride + i), rb), drs);
    }
    store(hn::MulAdd(sum, load(d, v.hs + i), load(d, dv.hb + i)), d, dv.hb + i);
    store(hn::MulAdd(sum, load(d, v.rs + i), load(d, dv.rb + i)), d, dv.rb + i);
    store(dhs, d, dv.hs + i);
    store(drs, d, dv.rs + i);
  });
}

// Rows [begin, end) of y.
void forward_rows(const Tensor& y, const Tensor& o, const Tensor& x, const MergeVectors& vectors,
                  int64_t begin, int64_t end) {
  const Pointers v(vectors);
  visit_activation(o.dtype, [&]<class T>() {
    for (int64_t r = begin; r < end; ++r) {
      forward_row(y.row<float>(r), o.row<T>(r), x.row<float>(r), v, x.columns());
    }
  });
}

void backward_rows(const Tensor& dx, const Tensor& d_o, const Tensor& dy,
                   const MergeVectors& vectors, int64_t begin, int64_t end) {
  const Pointers v(vectors);
  visit_activation(d_o.dtype, [&]<class T>() {
    for (int64_t r = begin; r < end; ++r) {
      backward_row(dx.row<float>(r), d_o.row<T>(r), dy.row<float>(r), v, dy.columns());
    }
  });
}

// The strip of a block of rows stays in the first cache while its columns are walked down one
// vector at a time.
void backward_vectors(const MergeVectors& dvectors, const MergeVectors& vectors, const Tensor& dy,
                      const Tensor& o, const Tensor& x, int64_t begin, int64_t end) {
  constexpr int64_t kRows = 64;
  visit_activation(o.dtype, [&]<class T>() {
    for (int64_t r = 0; r < x.rows(); r += kRows) {
      const int64_t rows = x.rows() - r < kRows ? x.rows() - r : kRows;
      vectors_strip(Pointers(dvectors), Pointers(vectors), dy.row<float>(r), o.row<T>(r),
                    x.row<float>(r), rows, x.columns(), begin, end);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(forward_rows);
HWY_EXPORT(backward_rows);
HWY_EXPORT(backward_vectors);

constexpr int64_t kStrip = 32;     // columns of one item of the vectors' gradients
constexpr int64_t kGrain = 16384;  // elements of one item of rows

int64_t rows_per_item(int64_t columns) { return std::max<int64_t>(1, kGrain / columns); }

bool same_shape(const Tensor& a, const Tensor& b) {
  return a.rows() == b.rows() && a.columns() == b.columns() && a.contiguous() && b.contiguous();
}
bool fits(const MergeVectors& v, int64_t n) {
  for (const Tensor* t : {&v.hidden_bias, &v.hidden_scale, &v.residual_bias, &v.residual_scale}) {
    if (t->size() != n || !t->contiguous()) return false;
  }
  return true;
}
}  // namespace

void residual_merge_forward(Context&, const Tensor& y, const Tensor& o, const Tensor& x,
                            const MergeVectors& vectors) {
  ZAYA_REQUIRE(same_shape(y, x) && same_shape(o, x) && fits(vectors, x.columns()));
  if (x.size() == 0) return;
  parallel_ranges(x.rows(), rows_per_item(x.columns()), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(forward_rows)(y, o, x, vectors, begin, end);
  });
}

void residual_merge_backward(Context&, const Tensor& dx, const Tensor& d_o,
                             const MergeVectors& dvectors, const Tensor& dy, const Tensor& o,
                             const Tensor& x, const MergeVectors& vectors) {
  ZAYA_REQUIRE(same_shape(dx, x) && same_shape(d_o, x) && same_shape(dy, x) && same_shape(o, x));
  ZAYA_REQUIRE(fits(vectors, x.columns()) && fits(dvectors, x.columns()));
  if (x.size() == 0) return;
  // Before dx, which may overwrite dy.
  parallel_ranges(x.columns(), kStrip, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(backward_vectors)(dvectors, vectors, dy, o, x, begin, end);
  });
  parallel_ranges(x.rows(), rows_per_item(x.columns()), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(backward_rows)(dx, d_o, dy, vectors, begin, end);
  });
}

}  // namespace zaya
#endif
