#include <gtest/gtest.h>

#include "ops/experts/dispatch.h"
#include "ops/experts/dispatch_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using namespace test;

TEST(DispatchGradient, ScatterIsTheGradientOfGather) {
  const int64_t T = 7, E = 2, D = 19;
  std::vector<int32_t> choice{1, 2, 0, 0, 2, 1, 0}, order(T), offsets(E + 2);
  Context ctx;
  sort_by_expert(ctx, view(order, {T}), view(offsets, {E + 2}), view(choice, {T}));
  auto dout = cast<float>(random_values(T * D, 1));
  std::vector<float> din(T * D, 100.0f);
  scatter_rows(ctx, view(din, {T, D}), view(dout, {T, D}), view(order, {T}),
               view(offsets, {E + 2}));

  const ComplexLoss loss = [&](const auto& in) {
    std::vector<Complex> out(T * D);
    reference::gather_rows(out.data(), in[0].data(), order.data(), offsets[E], D);
    Complex sum = 0;
    for (int64_t i = 0; i < T * D; ++i) sum += out[i] * static_cast<double>(dout[i]);
    return sum;
  };
  // A copy: no arithmetic but the oracle's own division by its step.
  const std::vector<double> wanted = complex_step_gradient(loss, {random_values(T * D, 2)}, 0);
  EXPECT_LT(relative_error(widen(din), wanted), 1e-14);
}

}  // namespace
}  // namespace zaya
