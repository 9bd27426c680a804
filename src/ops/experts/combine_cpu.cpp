#include <algorithm>

#include "ops/experts/combine.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/experts/combine_cpu.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first
#include <hwy/highway.h>

#include "backend/cpu/threads.h"
#include "backend/cpu/vector-inl.h"
#include "ops/experts/sorted_rows.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace {

template <class To, class From>
void scale_row(To* to, const From* from, float factor, int64_t D) {
  for_each_vector(D, [&](auto d, int64_t c) HWY_ATTR {
    store(hn::Mul(hn::Set(d, factor), load(d, from + c)), d, to + c);
  });
}

template <class T>
float dot(const T* a, const T* b, int64_t D) {
  return reduce_sum(
      D, [&](auto d, int64_t c) HWY_ATTR { return hn::Mul(load(d, a + c), load(d, b + c)); });
}

template <class T>
void forward_rows(const Tensor& y, const Tensor& expert_out, const Tensor& h, const float* gate,
                  const SortedRows& sorted, Skip skip) {
  const int64_t D = y.columns();
  parallel_ranges(sorted.tokens(), kSortedRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = sorted.token(i);
      if (i < sorted.count()) {
        scale_row(y.row<T>(t), expert_out.row<T>(i), gate[t], D);
      } else if (skip == Skip::pass) {
        scale_row(y.row<T>(t), h.row<T>(t), gate[t], D);
      } else {
        std::fill_n(y.row<T>(t), D, T());
      }
    }
  });
}

template <class T>
void backward_rows(const Tensor& dexpert_out, const Tensor& dh, float* dgate, const Tensor& dy,
                   const Tensor& expert_out, const Tensor& h, const float* gate,
                   const SortedRows& sorted, Skip skip) {
  const int64_t D = dy.columns();
  parallel_ranges(sorted.tokens(), kSortedRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = sorted.token(i);
      const T* dy_row = dy.row<T>(t);
      if (i < sorted.count()) {
        dgate[t] = dot(dy_row, expert_out.row<T>(i), D);
        scale_row(dexpert_out.row<T>(i), dy_row, gate[t], D);
        if (skip == Skip::pass) std::fill_n(dh.row<float>(t), D, 0.0f);
      } else if (skip == Skip::pass) {
        dgate[t] = dot(dy_row, h.row<T>(t), D);
        scale_row(dh.row<float>(t), dy_row, gate[t], D);
      } else {
        dgate[t] = 0;
      }
    }
  });
}

void forward(const Tensor& y, const Tensor& expert_out, const Tensor& h, const float* gate,
             const SortedRows& sorted, Skip skip) {
  visit_activation(y.dtype,
                   [&]<class T>() { forward_rows<T>(y, expert_out, h, gate, sorted, skip); });
}

void backward(const Tensor& dexpert_out, const Tensor& dh, float* dgate, const Tensor& dy,
              const Tensor& expert_out, const Tensor& h, const float* gate,
              const SortedRows& sorted, Skip skip) {
  visit_activation(dy.dtype, [&]<class T>() {
    backward_rows<T>(dexpert_out, dh, dgate, dy, expert_out, h, gate, sorted, skip);
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

void require_shapes(const Tensor& y, const Tensor& expert_out, const Tensor& h, const Tensor& gate,
                    const Tensor& order, Skip skip) {
  ZAYA_REQUIRE(y.contiguous() && y.rows() == order.size());
  ZAYA_REQUIRE(expert_out.shape == y.shape && expert_out.contiguous());
  ZAYA_REQUIRE(expert_out.dtype == y.dtype);
  ZAYA_REQUIRE(gate.size() == y.rows() && gate.contiguous());
  if (skip == Skip::zero) return;
  ZAYA_REQUIRE(h.shape == y.shape && h.contiguous() && h.dtype == y.dtype);
}
}  // namespace

void combine_forward(Context&, const Tensor& y, const Tensor& expert_out, const Tensor& h,
                     const Tensor& gate, const Tensor& order, const Tensor& offsets, Skip skip) {
  require_shapes(y, expert_out, h, gate, order, skip);
  HWY_DYNAMIC_DISPATCH(forward)
  (y, expert_out, h, gate.as<float>(), SortedRows(order, offsets), skip);
}

void combine_backward(Context&, const Tensor& dexpert_out, const Tensor& dh, const Tensor& dgate,
                      const Tensor& dy, const Tensor& expert_out, const Tensor& h,
                      const Tensor& gate, const Tensor& order, const Tensor& offsets, Skip skip) {
  require_shapes(dy, expert_out, h, gate, order, skip);
  require_shapes(dy, dexpert_out, dy, dgate, order, skip);
  ZAYA_REQUIRE(skip == Skip::zero || (dh.shape == dy.shape && dh.contiguous()));
  HWY_DYNAMIC_DISPATCH(backward)
  (dexpert_out, dh, dgate.as<float>(), dy, expert_out, h, gate.as<float>(),
   SortedRows(order, offsets), skip);
}

}  // namespace zaya
#endif  // HWY_ONCE
