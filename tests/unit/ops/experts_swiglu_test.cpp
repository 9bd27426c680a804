#include <gtest/gtest.h>

#include <cmath>

#include "ops/experts/swiglu.h"
#include "ops/experts/swiglu_reference.h"
#include "support/oracle.h"
#include "support/placed.h"

namespace zaya {
namespace {

using namespace test;

template <class T>
void expect_forward_matches_reference(double tolerance) {
  Context ctx;
  for (int64_t I = 1; I <= kMaxLength; ++I) {
    for (const int64_t offset : {0, 1, 3}) {
      const int64_t M = 3;
      const auto gate_up = cast<T>(random_values(M * 2 * I, I, 2.0));
      Placed<T> in(gate_up, {M, 2 * I}, offset);
      Placed<T> y(std::vector<T>(M * I), {M, I}, offset + 1);
      swiglu_forward(ctx, y.tensor(), in.tensor());
      std::vector<double> wanted(M * I);
      reference::swiglu(wanted.data(), widen(gate_up).data(), M, I);
      ASSERT_LT(relative_error(widen(y.values()), wanted), tolerance) << I << " " << offset;
    }
  }
}

TEST(Swiglu, ForwardMatchesTheReferenceAtEveryLengthAndMisalignment) {
  expect_forward_matches_reference<float>(5e-7);   // a handful of roundings of 6e-8
  expect_forward_matches_reference<bf16>(0x1p-8);  // the result's one rounding, half a unit of 2^-7
}

TEST(Swiglu, ForwardIsAccurateForEveryGate) {
  Context ctx;
  std::vector<float> gate_up;
  for (int i = -2200; i <= 2200; ++i) {
    const float root = static_cast<float>(i) * 0.005f;
    gate_up.push_back(root * root * root);  // dense near 0, out to 1331
    gate_up.push_back(1);
  }
  const auto M = static_cast<int64_t>(gate_up.size()) / 2;
  std::vector<float> y(M);
  swiglu_forward(ctx, view(y, {M, 1}), view(gate_up, {M, 2}));
  for (int64_t m = 0; m < M; ++m) {
    const double g = gate_up[2 * m], wanted = g / (1 + std::exp(-g));
    // exp(-g) in fp32 is within 1e-6 relative at |g| = 88; below that silu is under 1e-36.
    ASSERT_NEAR(y[m], wanted, 1e-6 * std::abs(wanted) + 1e-36) << g;
  }
}

TEST(Swiglu, HugeGatesSaturate) {
  Context ctx;
  std::vector<float> gate_up{1e30f, 1, -1e30f, 1}, y(2), dy{1, 1}, d(4);
  swiglu_forward(ctx, view(y, {2, 1}), view(gate_up, {2, 2}));
  EXPECT_EQ(y, (std::vector<float>{1e30f, 0}));
  swiglu_backward(ctx, view(d, {2, 2}), view(dy, {2, 1}), view(gate_up, {2, 2}));
  EXPECT_EQ(d, (std::vector<float>{1, 1e30f, 0, 0}));
}

TEST(Swiglu, NanStaysNan) {
  Context ctx;
  std::vector<float> gate_up{std::nanf(""), 1, 1, std::nanf("")}, y(2);
  swiglu_forward(ctx, view(y, {2, 1}), view(gate_up, {2, 2}));
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
}

template <class T>
void expect_in_place_backward_matches() {
  Context ctx;
  const int64_t M = 5, I = 21;
  auto gate_up = cast<T>(random_values(M * 2 * I, 1)), dy = cast<T>(random_values(M * I, 2));
  std::vector<T> d(M * 2 * I);
  swiglu_backward(ctx, view(d, {M, 2 * I}), view(dy, {M, I}), view(gate_up, {M, 2 * I}));
  swiglu_backward(ctx, view(gate_up, {M, 2 * I}), view(dy, {M, I}), view(gate_up, {M, 2 * I}));
  EXPECT_EQ(widen(gate_up), widen(d));
}

TEST(Swiglu, BackwardMayOverwriteItsInput) {
  expect_in_place_backward_matches<float>();
  expect_in_place_backward_matches<bf16>();
}

TEST(Swiglu, NoRowsIsNoWork) {
  Context ctx;
  std::vector<float> none;
  swiglu_forward(ctx, view(none, {0, 4}), view(none, {0, 8}));
}

TEST(Swiglu, IsTheSameOnAnyNumberOfThreads) {
  Context ctx;
  const int64_t M = 101, I = 45;
  auto gate_up = cast<float>(random_values(M * 2 * I, 1)),
       dy = cast<float>(random_values(M * I, 2));
  expect_same_bits_on_1_and_2_threads([&] {
    std::vector<float> y(M * I), d(M * 2 * I);
    swiglu_forward(ctx, view(y, {M, I}), view(gate_up, {M, 2 * I}));
    swiglu_backward(ctx, view(d, {M, 2 * I}), view(dy, {M, I}), view(gate_up, {M, 2 * I}));
    y.insert(y.end(), d.begin(), d.end());
    return y;
  });
}

TEST(Swiglu, MixedFormatsAreABrokenContract) {
  Context ctx;
  std::vector<float> y(2);
  std::vector<bf16> gate_up(4);
  EXPECT_THROW(swiglu_forward(ctx, view(y, {1, 2}), view(gate_up, {1, 4})), ContractError);
}

}  // namespace
}  // namespace zaya
