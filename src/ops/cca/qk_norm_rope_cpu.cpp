#include <cmath>

#include "backend/cpu/threads.h"
#include "ops/cca/qk_norm_rope.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cca/qk_norm_rope_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"
#include "core/ceil_div.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

constexpr int64_t kTokensPerItem = 32;

// Everything about one token but its inputs and outputs.
struct Token {
  const float* z;    // [C]
  const float* cos;  // [rotary / 2]
  const float* sin;
};

Token token_at(int64_t t, const Tensor& z, const Tensor& cos, const Tensor& sin,
               const Tensor& positions, const QkShape& shape) {
  if (shape.rotary == 0) return {z.row<float>(t), nullptr, nullptr};
  const int64_t position = positions.as<int32_t>()[t];
  ZAYA_REQUIRE(position >= 0 && position < cos.rows());
  return {z.row<float>(t), cos.row<float>(position), sin.row<float>(position)};
}

// x = z_q + mq for query head j, and mq added to `mean`.
template <class T>
void query_sum(float* x, float* mean, const float* z, const T* q0, const T* k0, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t c) {
    const auto half = hn::Set(d, 0.5f);
    const auto mq = hn::Mul(half, hn::Add(load(d, q0 + c), load(d, k0 + c)));
    store(hn::Add(load(d, mean + c), mq), d, mean + c);
    store(hn::Add(load(d, z + c), mq), d, x + c);
  });
}

// x = z_k + mk, given the sum of mq over the group's heads.
void key_sum(float* x, const float* mean, const float* z, float heads, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t c) {
    const auto mk = hn::Div(load(d, mean + c), hn::Set(d, heads));
    store(hn::Add(load(d, z + c), mk), d, x + c);
  });
}

float norm_of(const float* x, int64_t n) {
  return std::sqrt(reduce_sum(n, [&](auto d, int64_t c) {
    const auto v = load(d, x + c);
    return hn::Mul(v, v);
  }));
}

// out = rotate(factor * x).
template <class T>
void scale_and_rotate(T* out, const float* x, float factor, const Token& token,
                      const QkShape& shape) {
  const int64_t half = shape.rotary / 2;
  for_each_vector(half, [&](auto d, int64_t i) {
    const auto f = hn::Set(d, factor);
    const auto a = hn::Mul(f, load(d, x + i)), b = hn::Mul(f, load(d, x + half + i));
    const auto cos = load(d, token.cos + i), sin = load(d, token.sin + i);
    store(hn::NegMulAdd(b, sin, hn::Mul(a, cos)), d, out + i);
    store(hn::MulAdd(a, sin, hn::Mul(b, cos)), d, out + half + i);
  });
  const int64_t rotary = 2 * half;
  for_each_vector(shape.head_dim - rotary, [&](auto d, int64_t i) {
    store(hn::Mul(hn::Set(d, factor), load(d, x + rotary + i)), d, out + rotary + i);
  });
}

// out = dy rotated back.
template <class T>
void rotate_back(float* out, const T* dy, const Token& token, const QkShape& shape) {
  const int64_t half = shape.rotary / 2;
  for_each_vector(half, [&](auto d, int64_t i) {
    const auto a = load(d, dy + i), b = load(d, dy + half + i);
    const auto cos = load(d, token.cos + i), sin = load(d, token.sin + i);
    store(hn::MulAdd(b, sin, hn::Mul(a, cos)), d, out + i);
    store(hn::NegMulAdd(a, sin, hn::Mul(b, cos)), d, out + half + i);
  });
  const int64_t rotary = 2 * half;
  for_each_vector(shape.head_dim - rotary,
                  [&](auto d, int64_t i) { store(load(d, dy + rotary + i), d, out + rotary + i); });
}

// dx of y = rotate(x * sqrt(d) / max(|x|, eps) * temp), given dy. Returns this head's dtemp.
template <class T>
float head_backward(float* dx, const float* x, const T* dy, float temp, const Token& token,
                    const QkShape& shape) {
  const int64_t n = shape.head_dim;
  rotate_back(dx, dy, token, shape);
  const float dot =
      reduce_sum(n, [&](auto d, int64_t c) { return hn::Mul(load(d, x + c), load(d, dx + c)); });
  const float norm = norm_of(x, n);
  const float factor = std::sqrt(static_cast<float>(n)) / std::max(norm, kQkNormEps);
  // Below eps the divisor is a constant, and nothing flows through the norm.
  const float along = norm > kQkNormEps ? dot / norm / norm : 0.0f;
  for_each_vector(n, [&](auto d, int64_t c) {
    const auto across = hn::NegMulAdd(hn::Set(d, along), load(d, x + c), load(d, dx + c));
    store(hn::Mul(hn::Set(d, factor * temp), across), d, dx + c);
  });
  return dot * factor;
}

template <class Q, class T>
void forward_token(Q* q, Q* k, const Token& token, const T* qk0, const float* temp,
                   const QkShape& shape) {
  struct Tag;
  const int64_t n = shape.head_dim, heads = shape.query_heads / shape.key_heads;
  const float root = std::sqrt(static_cast<float>(n));
  float* x = thread_buffer<Tag, float>(2 * n);
  float* mean = x + n;
  for (int64_t g = 0; g < shape.key_heads; ++g) {
    const int64_t key = shape.query_heads + g;
    std::fill(mean, mean + n, 0.0f);
    for (int64_t j = g * heads; j < (g + 1) * heads; ++j) {
      query_sum(x, mean, token.z + j * n, qk0 + j * n, qk0 + key * n, n);
      scale_and_rotate(q + j * n, x, root / std::max(norm_of(x, n), kQkNormEps), token, shape);
    }
    key_sum(x, mean, token.z + key * n, static_cast<float>(heads), n);
    const float factor = root / std::max(norm_of(x, n), kQkNormEps) * temp[g];
    scale_and_rotate(k + g * n, x, factor, token, shape);
  }
}

// dq0_j = (dz_j + dz_key / G) / 2, and the same is added to dk0.
void mean_path_backward(float* dq0, float* dk0, const float* dz_query, const float* dz_key,
                        float heads, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t c) {
    const auto from_key = hn::Div(load(d, dz_key + c), hn::Set(d, heads));
    const auto v = hn::Mul(hn::Set(d, 0.5f), hn::Add(load(d, dz_query + c), from_key));
    store(v, d, dq0 + c);
    store(hn::Add(load(d, dk0 + c), v), d, dk0 + c);
  });
}

template <class Q, class T>
void backward_token(float* dz, float* dqk0, float* dtemp, const Q* dq, const Q* dk,
                    const Token& token, const T* qk0, const float* temp, const QkShape& shape) {
  struct Tag;
  const int64_t n = shape.head_dim, heads = shape.query_heads / shape.key_heads;
  float* x = thread_buffer<Tag, float>(2 * n);
  float* mean = x + n;
  for (int64_t g = 0; g < shape.key_heads; ++g) {
    const int64_t key = shape.query_heads + g;
    std::fill(mean, mean + n, 0.0f);
    for (int64_t j = g * heads; j < (g + 1) * heads; ++j) {
      query_sum(x, mean, token.z + j * n, qk0 + j * n, qk0 + key * n, n);
      head_backward(dz + j * n, x, dq + j * n, 1.0f, token, shape);
    }
    key_sum(x, mean, token.z + key * n, static_cast<float>(heads), n);
    dtemp[g] += head_backward(dz + key * n, x, dk + g * n, temp[g], token, shape);
    std::fill(dqk0 + key * n, dqk0 + (key + 1) * n, 0.0f);
    for (int64_t j = g * heads; j < (g + 1) * heads; ++j)
      mean_path_backward(dqk0 + j * n, dqk0 + key * n, dz + j * n, dz + key * n,
                         static_cast<float>(heads), n);
  }
}

void forward_op(const Tensor& q, const Tensor& k, const Tensor& z, const Tensor& qk0,
                const Tensor& temp, const Tensor& cos, const Tensor& sin, const Tensor& positions,
                const QkShape& shape) {
  visit_activation(q.dtype, [&]<class Q>() {
    visit_activation(qk0.dtype, [&]<class T>() {
      parallel_ranges(z.rows(), kTokensPerItem, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t)
          forward_token(q.row<Q>(t), k.row<Q>(t), token_at(t, z, cos, sin, positions, shape),
                        qk0.row<T>(t), temp.as<float>(), shape);
      });
    });
  });
}

void backward_op(const Tensor& dz, const Tensor& dqk0, const Tensor& dtemp, const Tensor& dq,
                 const Tensor& dk, const Tensor& z, const Tensor& qk0, const Tensor& temp,
                 const Tensor& cos, const Tensor& sin, const Tensor& positions,
                 const QkShape& shape) {
  struct Tag;
  const int64_t items = ceil_div(z.rows(), kTokensPerItem), nk = shape.key_heads;
  float* parts = thread_buffer<Tag, float>(items * nk);  // dtemp of each item
  visit_activation(dq.dtype, [&]<class Q>() {
    visit_activation(qk0.dtype, [&]<class T>() {
      parallel_ranges(z.rows(), kTokensPerItem, [&](int64_t begin, int64_t end) {
        float* part = parts + begin / kTokensPerItem * nk;
        std::fill(part, part + nk, 0.0f);
        for (int64_t t = begin; t < end; ++t)
          backward_token(dz.row<float>(t), dqk0.row<float>(t), part, dq.row<Q>(t), dk.row<Q>(t),
                         token_at(t, z, cos, sin, positions, shape), qk0.row<T>(t),
                         temp.as<float>(), shape);
      });
    });
  });
  for (int64_t i = 0; i < items; ++i)
    for (int64_t g = 0; g < nk; ++g) dtemp.as<float>()[g] += parts[i * nk + g];
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {

HWY_EXPORT(forward_op);
HWY_EXPORT(backward_op);

namespace {

void require_shapes(const Tensor& q, const Tensor& k, const Tensor& z, const Tensor& qk0,
                    const Tensor& temp, const Tensor& cos, const Tensor& sin,
                    const Tensor& positions, const QkShape& shape) {
  const int64_t nq = shape.query_heads, nk = shape.key_heads, d = shape.head_dim, T = z.rows();
  ZAYA_REQUIRE(nk > 0 && nq > 0 && nq % nk == 0 && d > 0);
  ZAYA_REQUIRE(shape.rotary >= 0 && shape.rotary % 2 == 0 && shape.rotary <= d);
  ZAYA_REQUIRE(z.columns() == (nq + nk) * d && qk0.columns() == z.columns() && qk0.rows() == T);
  ZAYA_REQUIRE(q.dtype == k.dtype && q.columns() == nq * d && k.columns() == nk * d);
  ZAYA_REQUIRE(q.rows() == T && k.rows() == T && positions.size() == T && temp.size() == nk);
  ZAYA_REQUIRE(shape.rotary == 0 || (cos.columns() == shape.rotary / 2 && cos.shape == sin.shape));
}

}  // namespace

void rotary_tables(const Tensor& cos, const Tensor& sin, double base) {
  ZAYA_REQUIRE(cos.shape == sin.shape && base > 0);
  const int64_t half = cos.columns();
  parallel_ranges(cos.rows(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(base, -static_cast<double>(i) / half);
      for (int64_t p = begin; p < end; ++p) {
        cos.row<float>(p)[i] = static_cast<float>(std::cos(p * frequency));
        sin.row<float>(p)[i] = static_cast<float>(std::sin(p * frequency));
      }
    }
  });
}

void qk_norm_rope_forward(Context&, const Tensor& q, const Tensor& k, const Tensor& z,
                          const Tensor& qk0, const Tensor& temp, const Tensor& cos,
                          const Tensor& sin, const Tensor& positions, const QkShape& shape) {
  require_shapes(q, k, z, qk0, temp, cos, sin, positions, shape);
  HWY_DYNAMIC_DISPATCH(forward_op)(q, k, z, qk0, temp, cos, sin, positions, shape);
}

void qk_norm_rope_backward(Context&, const Tensor& dz, const Tensor& dqk0, const Tensor& dtemp,
                           const Tensor& dq, const Tensor& dk, const Tensor& z, const Tensor& qk0,
                           const Tensor& temp, const Tensor& cos, const Tensor& sin,
                           const Tensor& positions, const QkShape& shape) {
  require_shapes(dq, dk, z, qk0, temp, cos, sin, positions, shape);
  ZAYA_REQUIRE(dz.columns() == z.columns() && dz.rows() == z.rows());
  ZAYA_REQUIRE(dqk0.columns() == z.columns() && dqk0.rows() == z.rows());
  ZAYA_REQUIRE(dtemp.size() == shape.key_heads);
  HWY_DYNAMIC_DISPATCH(backward_op)
  (dz, dqk0, dtemp, dq, dk, z, qk0, temp, cos, sin, positions, shape);
}

}  // namespace zaya
#endif
