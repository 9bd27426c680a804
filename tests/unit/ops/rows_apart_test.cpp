// Ops whose forward has a way of its own for tokens generated one by one (Rows::apart): the same
// values as together, but for rounding, and bits that do not depend on the rows beside.

#include <gtest/gtest.h>

#include "ops/attention/attention.h"
#include "ops/attention/attention_reference.h"
#include "ops/cca/grouped_conv.h"
#include "ops/cca/grouped_conv_reference.h"
#include "ops/embedding/embedding.h"
#include "ops/experts/expert_linear.h"
#include "ops/linear/linear.h"
#include "ops/linear/quantize.h"
#include "support/oracle.h"

namespace zaya {
namespace {

using test::cast;
using test::random_values;
using test::relative_error;
using test::view;
using test::widen;

Context apart() {
  Context ctx;
  ctx.rows = Rows::apart;
  return ctx;
}

TEST(RowsApart, LinearPartsReadOneInput) {
  const int64_t T = 3, K = 70;
  auto x = cast<float>(random_values(T * K, 1));
  auto first = cast<float>(random_values(9 * K, 2)), second = cast<float>(random_values(5 * K, 3));
  std::vector<float> y(2 * T * 14);
  const auto run = [&](Context ctx, float* to) {
    const Tensor both(to, DType::f32, {T, 14});
    const LinearPart parts[] = {{both.column_range(0, 9), view(first, {9, K}), {}},
                                {both.column_range(9, 14), view(second, {5, K}), {}}};
    linear_forward(ctx, parts, view(x, {T, K}));
  };
  run({}, y.data());
  run(apart(), y.data() + T * 14);
  const auto wide = widen(y);
  EXPECT_LT(
      relative_error({wide.begin() + T * 14, wide.end()}, {wide.begin(), wide.begin() + T * 14}),
      1e-6);
}

TEST(RowsApart, ExpertsTakeTheirOwnRowsAndLeaveSkippedOnesAlone) {
  const int64_t T = 6, N = 10, K = 33, E = 3;
  auto x = cast<float>(random_values(T * K, 1)), weight = cast<float>(random_values(E * N * K, 2));
  std::vector<int32_t> offsets{0, 2, 2, 5, 6};
  std::vector<float> together(T * N, 7.0f), one_by_one(T * N, 7.0f);
  const auto matrices = stacked_matrices(view(weight, {E, N, K}));
  Context ctx, alone = apart();
  expert_linear_forward(ctx, view(together, {T, N}), view(x, {T, K}), matrices,
                        view(offsets, {E + 2}));
  expert_linear_forward(alone, view(one_by_one, {T, N}), view(x, {T, K}), matrices,
                        view(offsets, {E + 2}));
  EXPECT_LT(relative_error(widen(one_by_one), widen(together)), 1e-6);
  for (int64_t i = 5 * N; i < T * N; ++i) EXPECT_EQ(one_by_one[i], 7.0f);
}

TEST(RowsApart, GroupedConvMatchesTheReference) {
  for (int64_t taps : {1, 2, 4}) {
    for (int64_t d : {1, 5, 16, 33}) {
      const std::vector<int32_t> bounds{0, 1, 1, 4};
      const int64_t groups = 3, C = groups * d, T = 4, rows = T + 3 * (taps - 1);
      auto in = cast<bf16>(random_values(rows * C, 1));
      auto weight = cast<float>(random_values(C * d * taps, 2));
      auto bias = cast<float>(random_values(C, 3));
      std::vector<float> out(T * C);
      Context ctx = apart();
      grouped_conv_forward(ctx, view(out, {T, C}), view(in, {rows, C}), view(weight, {C, d, taps}),
                           view(bias, {C}), {bounds});
      std::vector<double> wanted(out.size());
      reference::grouped_conv(wanted.data(), widen(in).data(), widen(weight).data(),
                              widen(bias).data(), {bounds}, C, d, taps);
      EXPECT_LT(relative_error(widen(out), wanted), 1e-6) << taps << " " << d;
    }
  }
}

// Two sequences with rows of their own among the keys; one long enough for several pieces.
TEST(RowsApart, AttentionMatchesTheReference) {
  const std::vector<AttentionSpan> spans{{0, 1, 0, 700}, {1, 2, 720, 5}};
  for (const AttentionShape& shape :
       {AttentionShape{4, 1, 16, 0, 0.25f}, AttentionShape{6, 2, 33, 0, 0.2f},
        AttentionShape{10, 2, 128, 300, 0.1f}, AttentionShape{3, 3, 5, 1, 0.4f}}) {
    const int64_t Q = 3, K = 725, q_columns = shape.query_heads * shape.head_dim,
                  k_columns = shape.key_heads * shape.head_dim;
    auto q = cast<bf16>(random_values(Q * q_columns, 1, 2.0));
    auto k = cast<bf16>(random_values(K * k_columns, 2)),
         v = cast<bf16>(random_values(K * k_columns, 3));
    std::vector<float> lse(Q * shape.query_heads);
    std::vector<bf16> o(Q * q_columns);
    Context ctx = apart();
    attention_forward(ctx, view(o, {Q, q_columns}), view(lse, {Q, shape.query_heads}),
                      view(q, {Q, q_columns}), view(k, {K, k_columns}), view(v, {K, k_columns}),
                      spans, shape);
    std::vector<double> wanted(o.size()), sums(lse.size());
    reference::attention(wanted.data(), sums.data(), widen(q).data(), widen(k).data(),
                         widen(v).data(), spans, shape);
    EXPECT_LT(relative_error(widen(o), wanted), 4e-3);  // rounded to bf16 once
    EXPECT_LT(relative_error(widen(lse), sums), 1e-6);
  }
}

TEST(RowsApart, AttentionPassesOnWhatIsNotANumber) {
  std::vector<float> q(32, 1.0f), k(300 * 8, 0.5f), v(300 * 8, 1.0f), o(32);
  k[290 * 8] = NAN;
  Context ctx = apart();
  const AttentionSpan span{0, 1, 0, 300};
  attention_forward(ctx, view(o, {1, 32}), {}, view(q, {1, 32}), view(k, {300, 8}),
                    view(v, {300, 8}), {&span, 1}, {4, 1, 8, 0, 1.0f});
  for (float x : o) EXPECT_TRUE(std::isnan(x));
}

TEST(RowsApart, AnEmbeddingOfCodesIsThatOfTheirValues) {
  const int64_t V = 7, D = 64, T = 3;
  Context ctx;
  auto values = cast<float>(random_values(V * D, 1));
  auto bias = cast<float>(random_values(D, 2)), scale = cast<float>(random_values(D, 3));
  std::vector<int32_t> ids{6, 0, 6};
  std::vector<int8_t> codes(V * D);
  std::vector<bf16> scales(V * D / kQuantGroup);
  const Weight table(Tensor(codes.data(), DType::i8, {V, D}), view(scales, {V, D / kQuantGroup}));
  quantize(ctx, table, view(values, {V, D}));
  dequantize(ctx, view(values, {V, D}), table);
  std::vector<float> got(T * D), wanted(T * D);
  embedding_forward(ctx, view(got, {T, D}), view(ids, {T}), table, view(bias, {D}),
                    view(scale, {D}));
  embedding_forward(ctx, view(wanted, {T, D}), view(ids, {T}), view(values, {V, D}),
                    view(bias, {D}), view(scale, {D}));
  EXPECT_EQ(got, wanted);
}

}  // namespace
}  // namespace zaya
