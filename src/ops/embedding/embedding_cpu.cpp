#include <algorithm>

#include "backend/cpu/quantized_weight.h"
#include "backend/cpu/threads.h"
#include "ops/embedding/embedding.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/embedding/embedding_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// out [n] = (in + bias) * scale;  in may be out.
template <class T>
void scale_row(float* out, const T* in, const float* bias, const float* scale, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t i) {
    store(hn::Mul(hn::Add(load(d, in + i), load(d, bias + i)), load(d, scale + i)), d, out + i);
  });
}

// Tokens [begin, end).
void forward_rows(const Tensor& x, const Tensor& ids, const Weight& table, const Tensor& bias,
                  const Tensor& scale, int64_t begin, int64_t end) {
  const int64_t n = x.columns();
  const float* b = bias.as<float>();
  const float* s = scale.as<float>();
  for (int64_t t = begin; t < end; ++t) {
    const int64_t id = ids.as<int32_t>()[t];
    float* out = x.row<float>(t);
    if (table.quantized()) {
      decode_weights(out, table, id, 0, n);
      scale_row(out, out, b, s, n);
    } else {
      visit_activation(table.values.dtype,
                       [&]<class T>() { scale_row(out, table.values.row<T>(id), b, s, n); });
    }
  }
}

// Columns [begin, end) of all three gradients, tokens in their order: one thread owns a strip, so
// tokens of one id never meet.
void backward_strip(const Tensor& dtable, const Tensor& dbias, const Tensor& dscale,
                    const Tensor& dx, const Tensor& ids, const Tensor& table, const Tensor& bias,
                    const Tensor& scale, int64_t begin, int64_t end) {
  const float* b = bias.as<float>() + begin;
  const float* s = scale.as<float>() + begin;
  float* db = dbias.as<float>() + begin;
  float* ds = dscale.as<float>() + begin;
  visit_activation(table.dtype, [&]<class T>() {
    for (int64_t t = 0; t < dx.rows(); ++t) {
      const int64_t id = ids.as<int32_t>()[t];
      const T* in = table.row<T>(id) + begin;
      const float* g = dx.row<float>(t) + begin;
      float* out = dtable.row<float>(id) + begin;
      for_each_vector(end - begin, [&](auto d, int64_t i) {
        const auto gradient = load(d, g + i);
        const auto scaled = hn::Mul(gradient, load(d, s + i));
        store(hn::Add(load(d, out + i), scaled), d, out + i);
        store(hn::Add(load(d, db + i), scaled), d, db + i);
        const auto shifted = hn::Add(load(d, in + i), load(d, b + i));
        store(hn::MulAdd(gradient, shifted, load(d, ds + i)), d, ds + i);
      });
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(forward_rows);
HWY_EXPORT(backward_strip);

constexpr int64_t kStrip = 64;     // columns of one item of the gradients
constexpr int64_t kGrain = 16384;  // elements of one item of rows

void check(const Tensor& x, const Tensor& ids, const Weight& table, const Tensor& bias,
           const Tensor& scale) {
  const int64_t n = table.columns();
  ZAYA_REQUIRE(x.rows() == ids.size() && x.columns() == n && x.contiguous() && ids.contiguous());
  ZAYA_REQUIRE(bias.size() == n && bias.contiguous() && scale.size() == n && scale.contiguous());
  const int32_t* id = ids.as<int32_t>();
  for (int64_t t = 0; t < ids.size(); ++t) {
    if (id[t] < 0 || id[t] >= table.rows()) {
      fail("token {}: wanted an id in [0, {}), got {}", t, table.rows(), id[t]);
    }
  }
}
}  // namespace

void embedding_forward(Context&, const Tensor& x, const Tensor& ids, const Weight& table,
                       const Tensor& bias, const Tensor& scale) {
  if (ids.size() == 0) return;
  check(x, ids, table, bias, scale);
  const int64_t rows_per_item = std::max<int64_t>(1, kGrain / x.columns());
  parallel_ranges(x.rows(), rows_per_item, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(forward_rows)(x, ids, table, bias, scale, begin, end);
  });
}

void embedding_backward(Context&, const Tensor& dtable, const Tensor& dbias, const Tensor& dscale,
                        const Tensor& dx, const Tensor& ids, const Tensor& table,
                        const Tensor& bias, const Tensor& scale) {
  if (ids.size() == 0) return;
  check(dx, ids, table, bias, scale);
  ZAYA_REQUIRE(dtable.rows() == table.rows() && dtable.columns() == table.columns());
  ZAYA_REQUIRE(dbias.size() == dx.columns() && dbias.contiguous());
  ZAYA_REQUIRE(dscale.size() == dx.columns() && dscale.contiguous());
  parallel_ranges(dx.columns(), kStrip, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(backward_strip)
    (dtable, dbias, dscale, dx, ids, table, bias, scale, begin, end);
  });
}

}  // namespace zaya
#endif
