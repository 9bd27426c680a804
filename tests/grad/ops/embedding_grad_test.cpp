// Legend: T tokens, V vocabulary, D hidden. The loss is sum(dx * x).
#include <gtest/gtest.h>

#include "ops/embedding/embedding.h"
#include "ops/embedding/embedding_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::Complex;
using test::random_values;
using test::view;
using test::widen;

constexpr int64_t kT = 6, kV = 5;
constexpr double kTolerance = 2e-6;  // fp32 sums of a few terms, started from 2

template <class T>
void check(int64_t D) {
  Context ctx;
  std::vector<int32_t> ids{4, 0, 2, 2, 1, 4};  // repeated ids add up; id 3 gets nothing
  auto table = cast<T>(random_values(kV * D, 1));
  auto bias = cast<float>(random_values(D, 2));
  auto scale = cast<float>(random_values(D, 3));
  auto dx = cast<float>(random_values(kT * D, 4));
  std::vector<float> dtable(kV * D, 2.0f), dbias(D, 2.0f), dscale(D, 2.0f);
  embedding_backward(ctx, view(dtable, {kV, D}), view(dbias, {D}), view(dscale, {D}),
                     view(dx, {kT, D}), view(ids, {kT}), view(table, {kV, D}), view(bias, {D}),
                     view(scale, {D}));
  const auto loss = [&](const std::vector<std::vector<Complex>>& in) {
    std::vector<Complex> x(kT * D);
    reference::embedding_forward(x.data(), ids.data(), in[0].data(), in[1].data(), in[2].data(), kT,
                                 D);
    Complex sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(dx[i]) * x[i];
    return sum;
  };
  const std::vector<std::vector<double>> inputs{widen(table), widen(bias), widen(scale)};
  const std::vector<float>* gradients[] = {&dtable, &dbias, &dscale};
  for (size_t i = 0; i < 3; ++i) {
    auto got = widen(*gradients[i]);
    for (double& v : got) v -= 2;
    EXPECT_LT(test::relative_error(got, test::complex_step_gradient(loss, inputs, i)), kTolerance);
  }
}

TEST(EmbeddingGrad, AllGradientsAddAndMatchTheComplexStep) {
  for (int64_t d : {1, 2, 5, 8, 13, 16, 17, 31, 40}) {
    check<float>(d);
    check<bf16>(d);
  }
}

}  // namespace
}  // namespace zaya
