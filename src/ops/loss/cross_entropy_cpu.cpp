#include <cmath>

#include "backend/cpu/threads.h"
#include "ops/loss/cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/loss/cross_entropy_cpu.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first
#include <hwy/contrib/math/math-inl.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

float row_max(const float* x, int64_t n) {
  const FullTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  float max = x[0];
  int64_t i = 0;
  if (n >= lanes) {
    auto maxima = hn::LoadU(d, x);
    for (i = lanes; i + lanes <= n; i += lanes) maxima = hn::Max(maxima, hn::LoadU(d, x + i));
    max = hn::GetLane(hn::MaxOfLanes(d, maxima));
  }
  for (; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max;
}

// exp(x - max), and NaN for NaN, which hn::Exp would turn into 0.
template <class D>
HWY_INLINE hn::Vec<D> exp_below(D d, hn::Vec<D> x, float max) {
  const auto shifted = hn::Sub(x, hn::Set(d, max));
  return hn::IfThenElse(hn::IsNaN(shifted), shifted, hn::Exp(d, shifted));
}

// Sum of exp(x - max), blocks in double: a vocabulary is long. Kept where x was, if wanted.
template <bool kKeep>
double sum_exp(float* x, int64_t n, float max) {
  constexpr int64_t kBlock = 2048;
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    sum += reduce_sum(n - begin < kBlock ? n - begin : kBlock, [&](auto d, int64_t i) {
      const auto e = exp_below(d, load(d, x + begin + i), max);
      if (kKeep) store(e, d, x + begin + i);
      return e;
    });
  }
  return sum;
}

// The loss of one row, and its gradient when there is a place for it (which may be x).
template <class T>
float row_loss(T* dx, float* x, int64_t label, int64_t n, float scale) {
  const float max = row_max(x, n);
  const float target = x[label] - max;
  const double sum = dx ? sum_exp<true>(x, n, max) : sum_exp<false>(x, n, max);
  if (dx) {
    const float factor = static_cast<float>(scale / sum);
    for_each_vector(n, [&](auto d, int64_t i) {
      store(hn::Mul(load(d, x + i), hn::Set(d, factor)), d, dx + i);
    });
    const double probability = std::exp(static_cast<double>(target)) / sum;
    dx[label] = T(static_cast<float>((probability - 1) * scale));
  }
  return static_cast<float>(std::log(sum) - target);
}

void forward_row(float* losses, const Tensor& logits, const int32_t* labels, int64_t r) {
  losses[r] = labels[r] == kIgnoredLabel ? 0.0f
                                         : row_loss<float>(nullptr, logits.row<float>(r), labels[r],
                                                           logits.columns(), 0.0f);
}

void forward_backward_row(float* losses, const Tensor& dlogits, const Tensor& logits,
                          const int32_t* labels, float scale, int64_t r) {
  const int64_t n = logits.columns();
  visit_activation(dlogits.dtype, [&]<class T>() {
    T* out = dlogits.row<T>(r);
    if (labels[r] == kIgnoredLabel) {
      losses[r] = 0;
      for (int64_t i = 0; i < n; ++i) out[i] = T(0.0f);
    } else {
      losses[r] = row_loss(out, logits.row<float>(r), labels[r], n, scale);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(forward_row);
HWY_EXPORT(forward_backward_row);

void check(const Tensor& losses, const Tensor& logits, const Tensor& labels) {
  ZAYA_REQUIRE(losses.size() == logits.rows() && labels.size() == logits.rows());
  ZAYA_REQUIRE(losses.contiguous() && labels.contiguous());
  const int32_t* label = labels.as<int32_t>();
  for (int64_t r = 0; r < labels.size(); ++r) {
    if (label[r] != kIgnoredLabel && (label[r] < 0 || label[r] >= logits.columns())) {
      fail("label {}: wanted an id in [0, {}) or -100, got {}", r, logits.columns(), label[r]);
    }
  }
}
}  // namespace

void cross_entropy_forward(Context&, const Tensor& losses, const Tensor& logits,
                           const Tensor& labels) {
  check(losses, logits, labels);
  parallel_for(logits.rows(), [&](int64_t r) {
    HWY_DYNAMIC_DISPATCH(forward_row)(losses.as<float>(), logits, labels.as<int32_t>(), r);
  });
}

void cross_entropy_forward_backward(Context&, const Tensor& losses, const Tensor& dlogits,
                                    const Tensor& logits, const Tensor& labels, float scale) {
  check(losses, logits, labels);
  ZAYA_REQUIRE(dlogits.rows() == logits.rows() && dlogits.columns() == logits.columns());
  parallel_for(logits.rows(), [&](int64_t r) {
    HWY_DYNAMIC_DISPATCH(forward_backward_row)
    (losses.as<float>(), dlogits, logits, labels.as<int32_t>(), scale, r);
  });
}

double sum_rows(Context&, const Tensor& x) {
  ZAYA_REQUIRE(x.contiguous());
  const float* values = x.as<float>();
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) sum += values[i];
  return sum;
}

}  // namespace zaya
#endif
