#include "backend/cpu/quantized_weight.h"
#include "backend/cpu/threads.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/quantize.h"

namespace zaya {
namespace {

constexpr int64_t kRows = 16;  // of one item of work

void check(const Weight& codes, const Tensor& values) {
  ZAYA_REQUIRE(codes.rows() == values.rows() && codes.columns() == values.columns());
  ZAYA_REQUIRE(quantizable(values.columns()) && codes.scales.dtype == DType::bf16);
  ZAYA_REQUIRE(codes.scales.rows() == values.rows() &&
               codes.scales.columns() == values.columns() / kQuantGroup);
}

}  // namespace

void quantize(Context&, const Weight& to, const Tensor& from) {
  ZAYA_REQUIRE(to.quantized());
  check(to, from);
  const int64_t K = from.columns();
  parallel_ranges(from.rows(), kRows, [&](int64_t begin, int64_t end) {
    struct Row;
    float* row = thread_buffer<Row, float>(K);
    for (int64_t n = begin; n < end; ++n) {
      visit_activation(from.dtype, [&]<class T>() {
        for (int64_t k = 0; k < K; ++k) row[k] = static_cast<float>(from.row<T>(n)[k]);
      });
      encode_weights(to, n, row);
    }
  });
}

void dequantize(Context& ctx, const Tensor& to, const Weight& from) {
  if (!from.quantized()) return convert(ctx, to, from.values);
  check(from, to);
  parallel_ranges(to.rows(), kRows, [&](int64_t begin, int64_t end) {
    visit_activation(to.dtype, [&]<class T>() {
      for (int64_t n = begin; n < end; ++n) decode_weights(to.row<T>(n), from, n, 0, to.columns());
    });
  });
}

}  // namespace zaya
