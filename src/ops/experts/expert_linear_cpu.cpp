#include <vector>

#include "backend/cpu/gemm.h"
#include "backend/cpu/row_products.h"
#include "ops/experts/expert_linear.h"

namespace zaya {
namespace {

// The products of one step, kept between calls so that the step loop does not allocate.
template <class Product>
std::vector<Product>& product_list() {
  thread_local std::vector<Product> products;
  products.clear();
  return products;
}

// Calls f(expert, begin, end) for every one of E experts that has tokens.
template <class F>
void for_each_expert(int64_t E, const Tensor& offsets, F&& f) {
  ZAYA_REQUIRE(offsets.size() == E + 2);
  const int32_t* bounds = offsets.as<int32_t>();
  for (int64_t e = 0; e < E; ++e)
    if (bounds[e + 1] > bounds[e]) f(e, bounds[e], bounds[e + 1]);
}

int64_t count(std::span<const Weight> weights) { return static_cast<int64_t>(weights.size()); }

}  // namespace

void expert_linear_forward(Context& ctx, const Tensor& y, const Tensor& x,
                           std::span<const Weight> weights, const Tensor& offsets) {
  ZAYA_REQUIRE(y.columns() == weights[0].rows() && x.columns() == weights[0].columns());
  if (ctx.rows == Rows::apart) {
    std::vector<RowProduct>& products = product_list<RowProduct>();
    for_each_expert(count(weights), offsets, [&](int64_t e, int64_t begin, int64_t end) {
      products.push_back({y.row_range(begin, end), x.row_range(begin, end), weights[e]});
    });
    return row_products(products);
  }
  std::vector<Gemm>& products = product_list<Gemm>();
  for_each_expert(count(weights), offsets, [&](int64_t e, int64_t begin, int64_t end) {
    products.push_back({.c = y.row_range(begin, end),
                        .a = x.row_range(begin, end),
                        .b = weights[e],
                        .transpose_b = true});
  });
  gemm_batch(products);
}

void expert_linear_backward_input(Context&, const Tensor& dx, const Tensor& dy,
                                  std::span<const Weight> weights, const Tensor& offsets) {
  ZAYA_REQUIRE(dy.columns() == weights[0].rows() && dx.columns() == weights[0].columns());
  std::vector<Gemm>& products = product_list<Gemm>();
  for_each_expert(count(weights), offsets, [&](int64_t e, int64_t begin, int64_t end) {
    products.push_back(
        {.c = dx.row_range(begin, end), .a = dy.row_range(begin, end), .b = weights[e].values});
  });
  gemm_batch(products);
}

void expert_linear_backward_weight(Context&, const Tensor& dweight, const Tensor& dy,
                                   const Tensor& x, const Tensor& offsets) {
  const int64_t E = dweight.shape[0], N = dweight.shape[1];
  ZAYA_REQUIRE(dweight.shape.rank() == 3 && dy.columns() == N && x.columns() == dweight.shape[2]);
  std::vector<Gemm>& products = product_list<Gemm>();
  for_each_expert(E, offsets, [&](int64_t e, int64_t begin, int64_t end) {
    products.push_back({.c = dweight.row_range(e * N, (e + 1) * N),
                        .a = dy.row_range(begin, end),
                        .b = x.row_range(begin, end),
                        .transpose_a = true,
                        .accumulate = true});
  });
  gemm_batch(products);
}

}  // namespace zaya
