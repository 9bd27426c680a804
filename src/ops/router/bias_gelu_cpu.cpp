#include "ops/router/bias_gelu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/router/bias_gelu_cpu.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first
#include <hwy/highway.h>

#include "backend/cpu/threads.h"
#include "backend/cpu/vector-inl.h"
#include "ops/router/column_sums-inl.h"
#include "ops/router/erf-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kRows = 32;  // rows an item computes

// The normal distribution function, (1 + erf(u / sqrt 2)) / 2.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_cdf(D d, V u) {
  const V half = hn::Set(d, 0.5f);
  return hn::MulAdd(half, erf(d, hn::Mul(u, hn::Set(d, 0.707106781f))), half);
}

// d gelu / du = cdf(u) + u * density(u).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_slope(D d, V u) {
  const V exponent = hn::Mul(hn::Mul(u, u), hn::Set(d, -0.5f));
  const V density = hn::Mul(hn::Exp(d, exponent), hn::Set(d, 0.398942280f));
  return hn::MulAdd(u, density, normal_cdf(d, u));
}

void forward(const Tensor& y, const Tensor& x, const Tensor& bias) {
  const float* b = bias.as<float>();
  parallel_ranges(x.rows(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* y_row = y.row<float>(t);
      const float* x_row = x.row<float>(t);
      for_each_vector(x.columns(), [&](auto d, int64_t n) HWY_ATTR {
        const auto u = hn::Add(load(d, x_row + n), load(d, b + n));
        store(hn::Mul(u, normal_cdf(d, u)), d, y_row + n);
      });
    }
  });
}

void backward(const Tensor& dx, const Tensor& dbias, const Tensor& dy, const Tensor& x,
              const Tensor& bias) {
  const float* b = bias.as<float>();
  parallel_ranges(x.rows(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* dx_row = dx.row<float>(t);
      const float* dy_row = dy.row<float>(t);
      const float* x_row = x.row<float>(t);
      for_each_vector(x.columns(), [&](auto d, int64_t n) HWY_ATTR {
        const auto u = hn::Add(load(d, x_row + n), load(d, b + n));
        store(hn::Mul(load(d, dy_row + n), gelu_slope(d, u)), d, dx_row + n);
      });
    }
  });
  const float* dx_data = dx.as<float>();
  const int64_t N = x.columns();
  add_column_sums(dbias.as<float>(), x.rows(), N, [=](auto d, int64_t t, int64_t n) HWY_ATTR {
    return load(d, dx_data + t * N + n);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);

void require_shapes(const Tensor& y, const Tensor& x, const Tensor& bias) {
  ZAYA_REQUIRE(y.shape == x.shape && bias.size() == x.columns());
  ZAYA_REQUIRE(y.contiguous() && x.contiguous() && bias.contiguous());
}
}  // namespace

void bias_gelu_forward(Context&, const Tensor& y, const Tensor& x, const Tensor& bias) {
  require_shapes(y, x, bias);
  HWY_DYNAMIC_DISPATCH(forward)(y, x, bias);
}

void bias_gelu_backward(Context&, const Tensor& dx, const Tensor& dbias, const Tensor& dy,
                        const Tensor& x, const Tensor& bias) {
  require_shapes(dx, x, bias);
  require_shapes(dy, x, dbias);
  HWY_DYNAMIC_DISPATCH(backward)(dx, dbias, dy, x, bias);
}

}  // namespace zaya
#endif  // HWY_ONCE
