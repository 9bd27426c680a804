#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ops/experts/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/experts/dispatch_cpu.cpp"
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
void copy_row(To* to, const From* from, int64_t D) {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, from, D * sizeof(To));
  } else {
    for_each_vector(D, [&](auto d, int64_t c) HWY_ATTR { store(load(d, from + c), d, to + c); });
  }
}

template <class To, class From>
void gather_typed(const Tensor& out, const Tensor& in, const SortedRows& sorted) {
  parallel_ranges(sorted.count(), kSortedRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      copy_row(out.row<To>(i), in.row<From>(sorted.token(i)), in.columns());
    }
  });
}

template <class From>
void scatter_typed(const Tensor& out, const Tensor& in, const SortedRows& sorted) {
  parallel_ranges(sorted.tokens(), kSortedRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* to = out.row<float>(sorted.token(i));
      if (i < sorted.count()) {
        copy_row(to, in.row<From>(i), in.columns());
      } else {
        std::fill_n(to, in.columns(), 0.0f);
      }
    }
  });
}

void gather(const Tensor& out, const Tensor& in, const SortedRows& sorted) {
  visit_activation(out.dtype, [&]<class To>() {
    visit_activation(in.dtype, [&]<class From>() { gather_typed<To, From>(out, in, sorted); });
  });
}

void scatter(const Tensor& out, const Tensor& in, const SortedRows& sorted) {
  visit_activation(in.dtype, [&]<class From>() { scatter_typed<From>(out, in, sorted); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(gather);
HWY_EXPORT(scatter);

void require_shapes(const Tensor& out, const Tensor& in, const Tensor& order) {
  ZAYA_REQUIRE(out.rows() == in.rows() && out.columns() == in.columns());
  ZAYA_REQUIRE(out.contiguous() && in.contiguous() && order.size() == in.rows());
}
}  // namespace

void sort_by_expert(Context&, const Tensor& order, const Tensor& offsets, const Tensor& choice) {
  const int64_t T = choice.size(), classes = offsets.size() - 1;
  ZAYA_REQUIRE(classes >= 1 && order.size() == T && T <= std::numeric_limits<int32_t>::max());
  ZAYA_REQUIRE(order.contiguous() && offsets.contiguous() && choice.contiguous());
  const int32_t* choices = choice.as<int32_t>();
  int32_t* start = offsets.as<int32_t>();
  std::fill_n(start, classes + 1, 0);
  for (int64_t t = 0; t < T; ++t) {
    ZAYA_REQUIRE(0 <= choices[t] && choices[t] < classes);
    ++start[choices[t] + 1];
  }
  for (int64_t e = 0; e < classes; ++e) start[e + 1] += start[e];

  // Placing a token moves its class's start up by one, until it is the next class's start.
  int32_t* sorted = order.as<int32_t>();
  for (int64_t t = 0; t < T; ++t) sorted[start[choices[t]]++] = static_cast<int32_t>(t);
  std::copy_backward(start, start + classes, start + classes + 1);
  start[0] = 0;
}

void gather_rows(Context&, const Tensor& out, const Tensor& in, const Tensor& order,
                 const Tensor& offsets) {
  require_shapes(out, in, order);
  HWY_DYNAMIC_DISPATCH(gather)(out, in, SortedRows(order, offsets));
}

void scatter_rows(Context&, const Tensor& out, const Tensor& in, const Tensor& order,
                  const Tensor& offsets) {
  require_shapes(out, in, order);
  HWY_DYNAMIC_DISPATCH(scatter)(out, in, SortedRows(order, offsets));
}

}  // namespace zaya
#endif  // HWY_ONCE
