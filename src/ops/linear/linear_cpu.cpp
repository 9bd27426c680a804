#include "backend/cpu/gemm.h"
#include "backend/cpu/threads.h"
#include "ops/linear/linear.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/linear_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// sums [n] += the rows of x [rows, n], in their order.
template <class T>
void add_rows(float* sums, const T* x, int64_t rows, int64_t row_stride, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t i) {
    auto sum = load(d, sums + i);
    for (int64_t r = 0; r < rows; ++r) sum = hn::Add(sum, load(d, x + r * row_stride + i));
    store(sum, d, sums + i);
  });
}

void add_rows_f32(float* sums, const float* x, int64_t rows, int64_t row_stride, int64_t n) {
  add_rows(sums, x, rows, row_stride, n);
}
void add_rows_bf16(float* sums, const bf16* x, int64_t rows, int64_t row_stride, int64_t n) {
  add_rows(sums, x, rows, row_stride, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(add_rows_f32);
HWY_EXPORT(add_rows_bf16);

// One item of work: a strip of this many columns, all rows.
constexpr int64_t kStrip = 64;
}  // namespace

void linear_forward(Context&, const Tensor& y, const Tensor& x, const Tensor& weight) {
  gemm({.c = y, .a = x, .b = weight, .transpose_b = true});
}

void linear_backward_input(Context&, const Tensor& dx, const Tensor& dy, const Tensor& weight,
                           Into into) {
  gemm({.c = dx, .a = dy, .b = weight, .accumulate = into == Into::add});
}

void linear_backward_weight(Context&, const Tensor& dweight, const Tensor& dy, const Tensor& x) {
  gemm({.c = dweight, .a = dy, .b = x, .transpose_a = true, .accumulate = true});
}

void bias_backward(Context&, const Tensor& dbias, const Tensor& dy) {
  const int64_t n = dy.columns();
  ZAYA_REQUIRE(dbias.size() == n && dbias.contiguous());
  float* sums = dbias.as<float>();
  parallel_ranges(n, kStrip, [&](int64_t begin, int64_t end) {
    if (dy.dtype == DType::bf16) {
      HWY_DYNAMIC_DISPATCH(add_rows_bf16)
      (sums + begin, dy.as<bf16>() + begin, dy.rows(), dy.row_stride, end - begin);
    } else {
      HWY_DYNAMIC_DISPATCH(add_rows_f32)
      (sums + begin, dy.as<float>() + begin, dy.rows(), dy.row_stride, end - begin);
    }
  });
}

}  // namespace zaya
#endif
