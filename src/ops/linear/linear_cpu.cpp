#include <array>

#include "backend/cpu/gemm.h"
#include "backend/cpu/row_products.h"
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

// Columns [begin, end) of sums += those of x. The strip of a block of rows stays in the first cache
// while its columns are walked down one vector at a time.
void add_columns(const Tensor& sums, const Tensor& x, int64_t begin, int64_t end) {
  constexpr int64_t kRows = 64;
  visit_activation(x.dtype, [&]<class T>() {
    for (int64_t r = 0; r < x.rows(); r += kRows) {
      const int64_t rows = x.rows() - r < kRows ? x.rows() - r : kRows;
      add_rows(sums.as<float>() + begin, x.row<T>(r) + begin, rows, x.row_stride, end - begin);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(add_columns);

// One item of work: a strip of this many columns, all rows.
constexpr int64_t kStrip = 64;
constexpr size_t kMostParts = 8;

// One product a part, side by side.
template <class F>
void for_parts(std::span<const LinearPart> parts, F&& product_of) {
  ZAYA_REQUIRE(parts.size() <= kMostParts);
  std::array<Gemm, kMostParts> products;
  for (size_t i = 0; i < parts.size(); ++i) products[i] = product_of(parts[i]);
  gemm_batch(std::span(products).first(parts.size()));
}
}  // namespace

void linear_forward(Context& ctx, const Tensor& y, const Tensor& x, const Weight& weight) {
  const LinearPart part{y, weight, {}};
  linear_forward(ctx, {&part, 1}, x);
}

void linear_backward_input(Context&, const Tensor& dx, const Tensor& dy, const Tensor& weight,
                           Into into) {
  gemm({.c = dx, .a = dy, .b = weight, .accumulate = into == Into::add});
}

void linear_backward_weight(Context&, const Tensor& dweight, const Tensor& dy, const Tensor& x) {
  gemm({.c = dweight, .a = dy, .b = x, .transpose_a = true, .accumulate = true});
}

void linear_forward(Context& ctx, std::span<const LinearPart> parts, const Tensor& x) {
  if (ctx.rows == Rows::apart) {
    ZAYA_REQUIRE(parts.size() <= kMostParts);
    std::array<RowProduct, kMostParts> products;
    for (size_t i = 0; i < parts.size(); ++i) products[i] = {parts[i].y, x, parts[i].weight};
    row_products(std::span(products).first(parts.size()));
    return;
  }
  for_parts(parts, [&](const LinearPart& p) {
    return Gemm{.c = p.y, .a = x, .b = p.weight, .transpose_b = true};
  });
}

void linear_backward_input(Context&, const Tensor& dx, std::span<const LinearPart> parts) {
  ZAYA_REQUIRE(!parts.empty() && parts.size() <= kMostParts);
  std::array<GemmTerm, kMostParts> more;
  for (size_t i = 1; i < parts.size(); ++i) more[i - 1] = {parts[i].y, parts[i].weight.values};
  gemm({.c = dx,
        .a = parts[0].y,
        .b = parts[0].weight.values,
        .more = std::span(more).first(parts.size() - 1)});
}

void linear_backward_weight(Context&, std::span<const LinearPart> parts, const Tensor& x) {
  for_parts(parts, [&](const LinearPart& p) {
    return Gemm{.c = p.gradient, .a = p.y, .b = x, .transpose_a = true, .accumulate = true};
  });
}

void bias_backward(Context&, const Tensor& dbias, const Tensor& dy) {
  const int64_t n = dy.columns();
  ZAYA_REQUIRE(dbias.size() == n && dbias.contiguous());
  parallel_ranges(n, kStrip, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_columns)(dbias, dy, begin, end);
  });
}

}  // namespace zaya
#endif
