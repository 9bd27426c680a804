#include "ops/experts/swiglu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/experts/swiglu_cpu.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "backend/cpu/threads.h"
#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kRows = 8;  // rows an item computes

// 1 + exp(-g): infinity below -88.8, where g / infinity rounds silu to zero. Highway's Exp answers
// infinity only up to about 170, hence the bound.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V one_plus_exp(D d, V g) {
  return hn::Add(hn::Set(d, 1.0f), hn::Exp(d, hn::Min(hn::Neg(g), hn::Set(d, 100.0f))));
}

template <class T>
void forward_rows(const Tensor& y, const Tensor& gate_up) {
  const int64_t I = y.columns();
  parallel_ranges(y.rows(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      T* out = y.row<T>(m);
      const T* gate = gate_up.row<T>(m);
      const T* up = gate + I;
      for_each_vector(I, [&](auto d, int64_t i) HWY_ATTR {
        const auto g = load(d, gate + i);
        store(hn::Mul(hn::Div(g, one_plus_exp(d, g)), load(d, up + i)), d, out + i);
      });
    }
  });
}

// With s = 1 / (1 + exp(-g)):  d silu / dg = s (1 + g (1 - s)).
template <class T>
void backward_rows(const Tensor& dgate_up, const Tensor& dy, const Tensor& gate_up) {
  const int64_t I = dy.columns();
  parallel_ranges(dy.rows(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      T* dgate = dgate_up.row<T>(m);
      const T* gate = gate_up.row<T>(m);
      const T* dy_row = dy.row<T>(m);
      for_each_vector(I, [&](auto d, int64_t i) HWY_ATTR {
        const auto one = hn::Set(d, 1.0f);
        const auto g = load(d, gate + i), u = load(d, gate + I + i), dout = load(d, dy_row + i);
        const auto s = hn::Div(one, one_plus_exp(d, g));
        const auto slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
        store(hn::Mul(hn::Mul(dout, u), slope), d, dgate + i);
        store(hn::Mul(dout, hn::Mul(g, s)), d, dgate + I + i);
      });
    }
  });
}

void forward(const Tensor& y, const Tensor& gate_up) {
  visit_activation(y.dtype, [&]<class T>() { forward_rows<T>(y, gate_up); });
}
void backward(const Tensor& dgate_up, const Tensor& dy, const Tensor& gate_up) {
  visit_activation(dy.dtype, [&]<class T>() { backward_rows<T>(dgate_up, dy, gate_up); });
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

void require_shapes(const Tensor& y, const Tensor& gate_up) {
  ZAYA_REQUIRE(y.rows() == gate_up.rows() && 2 * y.columns() == gate_up.columns());
  ZAYA_REQUIRE(y.dtype == gate_up.dtype && y.contiguous() && gate_up.contiguous());
}
}  // namespace

void swiglu_forward(Context&, const Tensor& y, const Tensor& gate_up) {
  require_shapes(y, gate_up);
  HWY_DYNAMIC_DISPATCH(forward)(y, gate_up);
}

void swiglu_backward(Context&, const Tensor& dgate_up, const Tensor& dy, const Tensor& gate_up) {
  require_shapes(dy, gate_up);
  require_shapes(dy, dgate_up);
  HWY_DYNAMIC_DISPATCH(backward)(dgate_up, dy, gate_up);
}

}  // namespace zaya
#endif  // HWY_ONCE
