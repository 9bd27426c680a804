#include "ops/router/depth_average.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/router/depth_average_cpu.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first
#include <hwy/highway.h>

#include "backend/cpu/threads.h"
#include "backend/cpu/vector-inl.h"
#include "ops/router/column_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kRows = 64;  // rows an item computes

void forward(const Tensor& r, const Tensor& bias, const Tensor& previous, const Tensor& gamma) {
  const float* b = bias.as<float>();
  const float* g = gamma.as<float>();
  parallel_ranges(r.rows(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* row = r.row<float>(t);
      const float* previous_row = previous ? previous.row<float>(t) : nullptr;
      for_each_vector(r.columns(), [&](auto d, int64_t c) HWY_ATTR {
        auto sum = hn::Add(load(d, row + c), load(d, b + c));
        if (previous_row) sum = hn::MulAdd(load(d, previous_row + c), load(d, g + c), sum);
        store(sum, d, row + c);
      });
    }
  });
}

void backward(const Tensor& dprevious, const Tensor& dbias, const Tensor& dgamma, const Tensor& dr,
              const Tensor& previous, const Tensor& gamma) {
  const int64_t T = dr.rows(), R = dr.columns();
  const float* dr_TR = dr.as<float>();
  add_column_sums(dbias.as<float>(), T, R, [=](auto d, int64_t t, int64_t c) HWY_ATTR {
    return load(d, dr_TR + t * R + c);
  });
  if (!previous) return;
  const float* previous_TR = previous.as<float>();
  add_column_sums(dgamma.as<float>(), T, R, [=](auto d, int64_t t, int64_t c) HWY_ATTR {
    return hn::Mul(load(d, dr_TR + t * R + c), load(d, previous_TR + t * R + c));
  });
  const float* g = gamma.as<float>();
  parallel_ranges(T, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* out = dprevious.row<float>(t);
      const float* in = dr_TR + t * R;
      for_each_vector(R, [&](auto d, int64_t c) HWY_ATTR {
        store(hn::Mul(load(d, in + c), load(d, g + c)), d, out + c);
      });
    }
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

// Block 0 has neither a previous state nor a gamma; every other block has both.
void require_shapes(const Tensor& r, const Tensor& bias, const Tensor& previous,
                    const Tensor& gamma) {
  ZAYA_REQUIRE(r.contiguous() && bias.contiguous() && bias.size() == r.columns());
  if (!previous && !gamma) return;
  ZAYA_REQUIRE(previous.shape == r.shape && previous.contiguous());
  ZAYA_REQUIRE(gamma.size() == r.columns() && gamma.contiguous());
}
}  // namespace

void depth_average_forward(Context&, const Tensor& r, const Tensor& bias, const Tensor& previous,
                           const Tensor& gamma) {
  require_shapes(r, bias, previous, gamma);
  HWY_DYNAMIC_DISPATCH(forward)(r, bias, previous, gamma);
}

void depth_average_backward(Context&, const Tensor& dprevious, const Tensor& dbias,
                            const Tensor& dgamma, const Tensor& dr, const Tensor& previous,
                            const Tensor& gamma) {
  require_shapes(dr, dbias, previous, gamma);
  require_shapes(dr, dbias, dprevious, dgamma);
  ZAYA_REQUIRE(bool(dprevious) == bool(previous) || dr.rows() == 0);
  HWY_DYNAMIC_DISPATCH(backward)(dprevious, dbias, dgamma, dr, previous, gamma);
}

}  // namespace zaya
#endif  // HWY_ONCE
