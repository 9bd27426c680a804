// Legend: T tokens, V vocabulary, D hidden.
#include "ops/embedding/embedding.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/embedding/embedding_reference.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::view;
using test::widen;

constexpr int64_t kT = 6, kV = 5;

template <class T>
double error_of_embedding(int64_t D, int64_t offset) {
  Context ctx;
  std::vector<int32_t> ids{4, 0, 2, 2, 1, 4};
  auto table = cast<T>(random_values(kV * D + offset, 1));
  auto bias = cast<float>(random_values(D + offset, 2));
  auto scale = cast<float>(random_values(D + offset, 3));
  std::vector<float> x(kT * D + offset);
  embedding_forward(ctx, Tensor(x.data() + offset, DType::f32, {kT, D}), view(ids, {kT}),
                    Tensor(table.data() + offset, DTypeOf<T>::value, {kV, D}),
                    Tensor(bias.data() + offset, DType::f32, {D}),
                    Tensor(scale.data() + offset, DType::f32, {D}));
  std::vector<double> expected(kT * D);
  const auto t = widen(table), b = widen(bias), s = widen(scale), got = widen(x);
  reference::embedding_forward(expected.data(), ids.data(), &t[offset], &b[offset], &s[offset], kT,
                               D);
  return test::relative_error({got.begin() + offset, got.end()}, expected);
}

TEST(Embedding, MatchesTheReferenceAtEveryLengthAndMisalignment) {
  for (int64_t d = 1; d <= 35; ++d) {
    for (int64_t offset : {0, 1, 3}) {
      EXPECT_LT(error_of_embedding<float>(d, offset), 1e-6);  // two fp32 roundings
      EXPECT_LT(error_of_embedding<bf16>(d, offset), 1e-6);   // a bf16 table is exact in fp32
    }
  }
}

TEST(Embedding, RefusesAnIdOutsideTheTable) {
  Context ctx;
  std::vector<float> table(4 * 2), bias(2), scale(2), x(3 * 2);
  for (int32_t bad : {-1, 4}) {
    std::vector<int32_t> ids{0, bad, 1};
    EXPECT_THROW(embedding_forward(ctx, view(x, {3, 2}), view(ids, {3}), view(table, {4, 2}),
                                   view(bias, {2}), view(scale, {2})),
                 Error);
  }
}

TEST(Embedding, GradientsDoNotDependOnTheNumberOfThreads) {
  Context ctx;
  constexpr int64_t kTokens = 500, kD = 200;
  std::vector<int32_t> ids(kTokens);
  for (int64_t t = 0; t < kTokens; ++t) ids[t] = static_cast<int32_t>(t * t % kV);
  auto table = cast<float>(random_values(kV * kD, 1));
  auto bias = cast<float>(random_values(kD, 2));
  auto scale = cast<float>(random_values(kD, 3));
  auto dx = cast<float>(random_values(kTokens * kD, 4));
  std::vector<float> gradients[2];
  for (int threads : {1, 2}) {
    auto& g = gradients[threads - 1];
    g.assign((kV + 2) * kD, 0.0f);
    const Tensor all = view(g, {kV + 2, kD});
    set_thread_count(threads);
    embedding_backward(ctx, all.row_range(0, kV), all.row_range(kV, kV + 1).reshaped({kD}),
                       all.row_range(kV + 1, kV + 2).reshaped({kD}), view(dx, {kTokens, kD}),
                       view(ids, {kTokens}), view(table, {kV, kD}), view(bias, {kD}),
                       view(scale, {kD}));
  }
  set_thread_count(0);
  EXPECT_EQ(0, std::memcmp(gradients[0].data(), gradients[1].data(), (kV + 2) * kD * 4));
}

}  // namespace
}  // namespace zaya
