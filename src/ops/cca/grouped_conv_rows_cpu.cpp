#include "backend/cpu/row_products.h"
#include "backend/cpu/threads.h"
#include "ops/cca/grouped_conv_rows.h"

namespace zaya {
namespace {

// What token t's filters meet, in the order in which they lie: x[g, c, i] = in[row + i, g d + c].
template <class T>
void gather_taps(float* x, const Tensor& in, int64_t row, int64_t taps) {
  const int64_t C = in.columns();
  for (int64_t i = 0; i < taps; ++i) {
    const T* from = in.row<T>(row + i);
    for (int64_t c = 0; c < C; ++c) x[c * taps + i] = static_cast<float>(from[c]);
  }
}

void add_bias(const Tensor& out, const float* bias) {
  for (int64_t t = 0; t < out.rows(); ++t) {
    float* row = out.row<float>(t);
    for (int64_t c = 0; c < out.columns(); ++c) row[c] += bias[c];
  }
}

}  // namespace

void grouped_conv_rows_forward(const Tensor& out, const Tensor& in, const Tensor& weight,
                               const Tensor& bias, Ragged sequences) {
  struct Taps;
  struct Products;
  const int64_t T = out.rows(), C = out.columns(), d = weight.shape[1], taps = weight.shape[2];
  float* taken = thread_buffer<Taps, float>(T * C * taps);
  const Tensor x(taken, DType::f32, {T, C * taps});
  for (int64_t s = 0; s < sequences.count(); ++s)
    for (int64_t t = sequences.begin(s); t < sequences.end(s); ++t)
      visit_activation(in.dtype, [&]<class A>() {
        gather_taps<A>(taken + t * C * taps, in, t + s * (taps - 1), taps);
      });
  const Tensor filters = weight.reshaped({C, d * taps});
  RowProduct* products = thread_buffer<Products, RowProduct>(C / d);
  for (int64_t g = 0; g < C / d; ++g)
    products[g] = {out.column_range(g * d, (g + 1) * d),
                   x.column_range(g * d * taps, (g + 1) * d * taps),
                   filters.row_range(g * d, (g + 1) * d)};
  row_products({products, static_cast<size_t>(C / d)});
  add_bias(out, bias.as<float>());
}

}  // namespace zaya
