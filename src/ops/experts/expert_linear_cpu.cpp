#include <vector>

#include "backend/cpu/gemm.h"
#include "ops/experts/expert_linear.h"

namespace zaya {
namespace {

// The products of one step, kept between calls so that the step loop does not allocate.
std::vector<Gemm>& product_list() {
  thread_local std::vector<Gemm> products;
  products.clear();
  return products;
}

// Calls f(expert, begin, end) for every expert that has tokens.
template <class F>
void for_each_expert(const Tensor& weight, const Tensor& offsets, F&& f) {
  const int64_t E = weight.shape[0];
  ZAYA_REQUIRE(weight.shape.rank() == 3 && offsets.size() == E + 2);
  const int32_t* bounds = offsets.as<int32_t>();
  for (int64_t e = 0; e < E; ++e)
    if (bounds[e + 1] > bounds[e]) f(e, bounds[e], bounds[e + 1]);
}

Tensor matrix_of(const Tensor& weight, int64_t expert) {
  const int64_t N = weight.shape[1];
  return weight.row_range(expert * N, (expert + 1) * N);
}

}  // namespace

void expert_linear_forward(Context&, const Tensor& y, const Tensor& x, const Tensor& weight,
                           const Tensor& offsets) {
  ZAYA_REQUIRE(y.columns() == weight.shape[1] && x.columns() == weight.shape[2]);
  std::vector<Gemm>& products = product_list();
  for_each_expert(weight, offsets, [&](int64_t e, int64_t begin, int64_t end) {
    products.push_back({.c = y.row_range(begin, end),
                        .a = x.row_range(begin, end),
                        .b = matrix_of(weight, e),
                        .transpose_b = true});
  });
  gemm_batch(products);
}

void expert_linear_backward_input(Context&, const Tensor& dx, const Tensor& dy,
                                  const Tensor& weight, const Tensor& offsets) {
  ZAYA_REQUIRE(dy.columns() == weight.shape[1] && dx.columns() == weight.shape[2]);
  std::vector<Gemm>& products = product_list();
  for_each_expert(weight, offsets, [&](int64_t e, int64_t begin, int64_t end) {
    products.push_back(
        {.c = dx.row_range(begin, end), .a = dy.row_range(begin, end), .b = matrix_of(weight, e)});
  });
  gemm_batch(products);
}

void expert_linear_backward_weight(Context&, const Tensor& dweight, const Tensor& dy,
                                   const Tensor& x, const Tensor& offsets) {
  ZAYA_REQUIRE(dy.columns() == dweight.shape[1] && x.columns() == dweight.shape[2]);
  std::vector<Gemm>& products = product_list();
  for_each_expert(dweight, offsets, [&](int64_t e, int64_t begin, int64_t end) {
    products.push_back({.c = matrix_of(dweight, e),
                        .a = dy.row_range(begin, end),
                        .b = x.row_range(begin, end),
                        .transpose_a = true,
                        .accumulate = true});
  });
  gemm_batch(products);
}

}  // namespace zaya
