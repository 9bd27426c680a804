#include <algorithm>
#include <cmath>

#include "backend/cpu/threads.h"
#include "ops/norm/rms_norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/norm/rms_norm_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// One row of n. Returns 1 / sqrt(mean(x^2) + eps).
template <class T>
float forward_row(T* y, const float* x, const float* weight, int64_t n, float eps) {
  const float squares = reduce_sum(n, [&](auto d, int64_t i) {
    const auto v = load(d, x + i);
    return hn::Mul(v, v);
  });
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto normed = hn::Mul(load(d, x + i), hn::Set(d, rstd));
    store(hn::Mul(normed, load(d, weight + i)), d, y + i);
  });
  return rstd;
}

// One row of n. With h = x * rstd:  dx += rstd * (dy * weight - h * mean(dy * weight * h)).
template <class T>
void backward_row(float* dx, const T* dy, const float* x, const float* weight, float rstd,
                  int64_t n) {
  const float dot = reduce_sum(n, [&](auto d, int64_t i) {
    return hn::Mul(hn::Mul(load(d, dy + i), load(d, weight + i)), load(d, x + i));
  });
  const float along = dot * rstd * rstd / static_cast<float>(n);
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto dh = hn::Mul(load(d, dy + i), load(d, weight + i));
    const auto across = hn::Sub(dh, hn::Mul(load(d, x + i), hn::Set(d, along)));
    store(hn::Add(load(d, dx + i), hn::Mul(across, hn::Set(d, rstd))), d, dx + i);
  });
}

// dweight [n] += sum over rows of dy * x * rstd, rows in their order, for a strip of n columns.
template <class T>
void weight_strip(float* dweight, const T* dy, const float* x, const float* rstd, int64_t rows,
                  int64_t row_stride, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t i) {
    auto sum = load(d, dweight + i);
    for (int64_t r = 0; r < rows; ++r) {
      const auto h = hn::Mul(load(d, x + r * row_stride + i), hn::Set(d, rstd[r]));
      sum = hn::Add(sum, hn::Mul(load(d, dy + r * row_stride + i), h));
    }
    store(sum, d, dweight + i);
  });
}

// Rows [begin, end).
void forward_rows(const Tensor& y, const Tensor& rstd, const Tensor& x, const Tensor& weight,
                  float eps, int64_t begin, int64_t end) {
  visit_activation(y.dtype, [&]<class T>() {
    for (int64_t r = begin; r < end; ++r) {
      rstd.as<float>()[r] =
          forward_row(y.row<T>(r), x.row<float>(r), weight.as<float>(), x.columns(), eps);
    }
  });
}

void backward_rows(const Tensor& dx, const Tensor& dy, const Tensor& x, const Tensor& weight,
                   const Tensor& rstd, int64_t begin, int64_t end) {
  visit_activation(dy.dtype, [&]<class T>() {
    for (int64_t r = begin; r < end; ++r) {
      backward_row(dx.row<float>(r), dy.row<T>(r), x.row<float>(r), weight.as<float>(),
                   rstd.as<float>()[r], x.columns());
    }
  });
}

// Columns [begin, end) of dweight. The strip of a block of rows stays in the first cache while its
// columns are walked down one vector at a time.
void backward_weight(const Tensor& dweight, const Tensor& dy, const Tensor& x, const Tensor& rstd,
                     int64_t begin, int64_t end) {
  constexpr int64_t kRows = 64;
  visit_activation(dy.dtype, [&]<class T>() {
    for (int64_t r = 0; r < x.rows(); r += kRows) {
      const int64_t rows = x.rows() - r < kRows ? x.rows() - r : kRows;
      weight_strip(dweight.as<float>() + begin, dy.row<T>(r) + begin, x.row<float>(r) + begin,
                   rstd.as<float>() + r, rows, x.columns(), end - begin);
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
HWY_EXPORT(backward_weight);

constexpr int64_t kStrip = 64;     // columns of one item of the weight gradient
constexpr int64_t kGrain = 16384;  // elements of one item of rows

int64_t rows_per_item(int64_t columns) { return std::max<int64_t>(1, kGrain / columns); }
}  // namespace

void rms_norm_forward(Context&, const Tensor& y, const Tensor& rstd, const Tensor& x,
                      const Tensor& weight, float eps) {
  const int64_t rows = x.rows(), n = x.columns();
  ZAYA_REQUIRE(y.rows() == rows && y.columns() == n && rstd.size() == rows && weight.size() == n);
  ZAYA_REQUIRE(x.contiguous() && y.contiguous() && rstd.contiguous() && weight.contiguous());
  if (rows == 0) return;
  parallel_ranges(rows, rows_per_item(n), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(forward_rows)(y, rstd, x, weight, eps, begin, end);
  });
}

void rms_norm_backward(Context&, const Tensor& dx, const Tensor& dweight, const Tensor& dy,
                       const Tensor& x, const Tensor& weight, const Tensor& rstd) {
  const int64_t rows = x.rows(), n = x.columns();
  ZAYA_REQUIRE(dy.rows() == rows && dy.columns() == n && dx.rows() == rows && dx.columns() == n);
  ZAYA_REQUIRE(rstd.size() == rows && weight.size() == n && dweight.size() == n);
  ZAYA_REQUIRE(x.contiguous() && dx.contiguous() && dy.contiguous() && rstd.contiguous());
  ZAYA_REQUIRE(weight.contiguous() && dweight.contiguous());
  if (rows == 0) return;
  parallel_ranges(n, kStrip, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(backward_weight)(dweight, dy, x, rstd, begin, end);
  });
  parallel_ranges(rows, rows_per_item(n), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(backward_rows)(dx, dy, x, weight, rstd, begin, end);
  });
}

}  // namespace zaya
#endif
