#include <algorithm>

#include "backend/cpu/threads.h"
#include "core/ceil_div.h"
#include "ops/optim/sum_squares.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optim/sum_squares_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// In double throughout: the square of a float may not fit a float.
double block_squares(const float* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d), odd = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(half, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(half, x + i + lanes));
    even = hn::MulAdd(a, a, even);
    odd = hn::MulAdd(b, b, odd);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(block_squares);
constexpr int64_t kBlock = 16384;
}  // namespace

double sum_squares(Context&, const Tensor& x) {
  struct Partial;
  ZAYA_REQUIRE(x.contiguous());
  const float* values = x.as<float>();
  const int64_t blocks = ceil_div(x.size(), kBlock);
  double* partial = thread_buffer<Partial, double>(blocks);
  parallel_for(blocks, [&](int64_t i) {
    const int64_t begin = i * kBlock;
    partial[i] =
        HWY_DYNAMIC_DISPATCH(block_squares)(values + begin, std::min(kBlock, x.size() - begin));
  });
  double sum = 0;
  for (int64_t i = 0; i < blocks; ++i) sum += partial[i];
  return sum;
}

}  // namespace zaya
#endif
