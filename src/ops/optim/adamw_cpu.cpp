#include <cmath>

#include "backend/cpu/threads.h"
#include "ops/optim/adamw.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optim/adamw_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// The corrections are 1 / (1 - beta^step), worked out in double by the caller.
void update_run(float* w, float* m, float* v, const float* gradient, int64_t n,
                const AdamWSettings& s, float correction1, float correction2) {
  for_each_vector(n, [&](auto d, int64_t i) {
    const auto g = hn::Mul(load(d, gradient + i), hn::Set(d, s.gradient_scale));
    const auto mean =
        hn::MulAdd(hn::Set(d, 1.0f - s.beta1), g, hn::Mul(hn::Set(d, s.beta1), load(d, m + i)));
    const auto square = hn::MulAdd(hn::Set(d, 1.0f - s.beta2), hn::Mul(g, g),
                                   hn::Mul(hn::Set(d, s.beta2), load(d, v + i)));
    store(mean, d, m + i);
    store(square, d, v + i);
    const auto root = hn::Sqrt(hn::Mul(square, hn::Set(d, correction2)));
    const auto step =
        hn::Div(hn::Mul(mean, hn::Set(d, correction1)), hn::Add(root, hn::Set(d, s.eps)));
    const auto weight = load(d, w + i);
    const auto change = hn::MulAdd(hn::Set(d, s.weight_decay), weight, step);
    store(hn::NegMulAdd(hn::Set(d, s.learning_rate), change, weight), d, w + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(update_run);
constexpr int64_t kGrain = 16384;

float correction(float beta, int64_t step) {
  const double b = beta;
  return static_cast<float>(1 / (1 - std::pow(b, static_cast<double>(step))));
}
}  // namespace

void adamw_update(Context&, const Tensor& weight, const Tensor& first_moment,
                  const Tensor& second_moment, const Tensor& gradient,
                  const AdamWSettings& settings) {
  const int64_t n = weight.size();
  ZAYA_REQUIRE(first_moment.size() == n && second_moment.size() == n && gradient.size() == n);
  ZAYA_REQUIRE(weight.contiguous() && gradient.contiguous());
  ZAYA_REQUIRE(first_moment.contiguous() && second_moment.contiguous());
  ZAYA_REQUIRE(settings.step >= 1);
  float* w = weight.as<float>();
  float* m = first_moment.as<float>();
  float* v = second_moment.as<float>();
  const float* g = gradient.as<float>();
  const float correction1 = correction(settings.beta1, settings.step);
  const float correction2 = correction(settings.beta2, settings.step);
  parallel_ranges(n, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(update_run)
    (w + begin, m + begin, v + begin, g + begin, end - begin, settings, correction1, correction2);
  });
}

}  // namespace zaya
#endif
