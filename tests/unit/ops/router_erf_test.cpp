// The vectorised erf against std::erf in double, on every instruction set this machine has.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/oracle.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "unit/ops/router_erf_test.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first
#include <hwy/highway.h>

#include "backend/cpu/vector-inl.h"
#include "ops/router/erf-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace {

void erf_array(float* y, const float* x, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t i) HWY_ATTR { store(erf(d, load(d, x + i)), d, y + i); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(erf_array);

std::vector<float> erf_of(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(erf_array)(y.data(), x.data(), static_cast<int64_t>(x.size()));
  return y;
}

// f() for every instruction set, one after the other.
template <class F>
void on_every_target(F&& f) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Erf, IsWithin2e7OnADenseGrid) {
  std::vector<float> x;
  for (int i = -600000; i <= 600000; ++i) x.push_back(static_cast<float>(i) * 1e-5f);
  on_every_target([&] {
    const std::vector<float> y = erf_of(x);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::abs(y[i] - std::erf(static_cast<double>(x[i]))));
    }
    // Three roundings near 1, of 6e-8 each, and the fit.
    EXPECT_LT(worst, 2e-7);
  });
}

TEST(Erf, IsWithin2e7RelativeNearZero) {
  std::vector<float> x;
  for (float v = 0.9f; v > 1e-36f; v *= 0.99f) x.push_back(v);
  on_every_target([&] {
    const std::vector<float> y = erf_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double wanted = std::erf(static_cast<double>(x[i]));
      ASSERT_NEAR(y[i] / wanted, 1, 2e-7) << x[i];
    }
  });
}

TEST(Erf, OfADenormalIsADenormalWithinOneStep) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x{tiny, -tiny, 100 * tiny, 1e-39f, -1e-39f};
  on_every_target([&] {
    const std::vector<float> y = erf_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(y[i], std::erf(static_cast<double>(x[i])), tiny) << x[i];
    }
  });
}

TEST(Erf, IsOneInTheTailsAndAtInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  on_every_target([&] {
    for (const float x : {4.0f, 10.0f, 1e10f, largest, infinity}) {
      EXPECT_EQ(erf_of({x})[0], 1) << x;
      EXPECT_EQ(erf_of({-x})[0], -1) << x;
    }
  });
}

TEST(Erf, IsNeverBeyondOneInMagnitude) {
  std::vector<float> x;
  for (float v = 3; v < 4.5f; v = std::nextafter(v, 5.0f) + 1e-6f) x.push_back(v);
  on_every_target([&] {
    for (const float y : erf_of(x)) ASSERT_LE(y, 1);
  });
}

TEST(Erf, KeepsTheSignOfZero) {
  on_every_target([&] {
    EXPECT_FALSE(std::signbit(erf_of({0.0f})[0]));
    EXPECT_TRUE(std::signbit(erf_of({-0.0f})[0]));
  });
}

TEST(Erf, OfNanIsNan) {
  on_every_target([&] { EXPECT_TRUE(std::isnan(erf_of({std::nanf("")})[0])); });
}

}  // namespace
}  // namespace zaya
#endif  // HWY_ONCE
