#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/threads.h"
#include "ops/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise/elementwise_cpu.cpp"
#include <hwy/foreach_target.h>

#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

void widen(float* to, const bf16* from, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t i) { store(load(d, from + i), d, to + i); });
}
void narrow(bf16* to, const float* from, int64_t n) {
  for_each_vector(n, [&](auto d, int64_t i) { store(load(d, from + i), d, to + i); });
}
void add_f32(float* y, const float* x, int64_t n) {
  for_each_vector(
      n, [&](auto d, int64_t i) { store(hn::Add(load(d, y + i), load(d, x + i)), d, y + i); });
}
void add_bf16(float* y, const bf16* x, int64_t n) {
  for_each_vector(
      n, [&](auto d, int64_t i) { store(hn::Add(load(d, y + i), load(d, x + i)), d, y + i); });
}
void scale_f32(float* x, int64_t n, float factor) {
  for_each_vector(
      n, [&](auto d, int64_t i) { store(hn::Mul(load(d, x + i), hn::Set(d, factor)), d, x + i); });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(widen);
HWY_EXPORT(narrow);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_bf16);
HWY_EXPORT(scale_f32);

// Elements of one item of work: big enough to hide the cost of handing it out.
constexpr int64_t kGrain = 16384;

char* bytes_at(const Tensor& t, int64_t element) {
  return static_cast<char*>(t.data) + element * static_cast<int64_t>(size_of(t.dtype));
}

// n elements from the given elements on, converted.
void convert_run(const Tensor& to, int64_t to_at, const Tensor& from, int64_t from_at, int64_t n) {
  if (to.dtype == from.dtype) {
    std::memmove(bytes_at(to, to_at), bytes_at(from, from_at), n * size_of(to.dtype));
  } else if (to.dtype == DType::f32) {
    HWY_DYNAMIC_DISPATCH(widen)(to.as<float>() + to_at, from.as<bf16>() + from_at, n);
  } else {
    HWY_DYNAMIC_DISPATCH(narrow)(to.as<bf16>() + to_at, from.as<float>() + from_at, n);
  }
}

// A keyed bijection of the counter (the finaliser of SplitMix64, twice): 64 random bits for (seed,
// i).
uint64_t random_bits(uint64_t seed, uint64_t i) {
  uint64_t z = i * 0x9e3779b97f4a7c15u + seed;
  for (int round = 0; round < 2; ++round) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z = (z ^ (z >> 31)) + seed * 0xd1342543de82ef95u + 1;
  }
  return z;
}

// Box and Muller's transform of two uniform numbers drawn from one word of 64 bits each.
double normal(uint64_t seed, uint64_t i) {
  const double u = (static_cast<double>(random_bits(seed, 2 * i) >> 12) + 0.5) * 0x1p-52;
  const double v = static_cast<double>(random_bits(seed, 2 * i + 1) >> 12) * 0x1p-52;
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}
}  // namespace

void fill_zero(Context&, const Tensor& x) {
  const int64_t row_bytes = x.columns() * static_cast<int64_t>(size_of(x.dtype));
  if (x.contiguous()) {
    parallel_ranges(x.bytes(), 4 * kGrain, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<char*>(x.data) + begin, 0, end - begin);
    });
    return;
  }
  for (int64_t r = 0; r < x.rows(); ++r) std::memset(bytes_at(x, r * x.row_stride), 0, row_bytes);
}

void convert(Context&, const Tensor& to, const Tensor& from) {
  ZAYA_REQUIRE(to.dtype == from.dtype || (to.dtype == DType::f32 && from.dtype == DType::bf16) ||
               (to.dtype == DType::bf16 && from.dtype == DType::f32));
  ZAYA_REQUIRE(to.size() == from.size());
  if (to.contiguous() && from.contiguous()) {
    parallel_ranges(to.size(), kGrain, [&](int64_t begin, int64_t end) {
      convert_run(to, begin, from, begin, end - begin);
    });
    return;
  }
  ZAYA_REQUIRE(to.columns() == from.columns());
  const int64_t rows_per_item = std::max<int64_t>(1, kGrain / to.columns());
  parallel_ranges(to.rows(), rows_per_item, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      convert_run(to, r * to.row_stride, from, r * from.row_stride, to.columns());
    }
  });
}

void add(Context&, const Tensor& y, const Tensor& x) {
  ZAYA_REQUIRE(y.size() == x.size() && y.contiguous() && x.contiguous());
  float* out = y.as<float>();
  parallel_ranges(y.size(), kGrain, [&](int64_t begin, int64_t end) {
    if (x.dtype == DType::bf16) {
      HWY_DYNAMIC_DISPATCH(add_bf16)(out + begin, x.as<bf16>() + begin, end - begin);
    } else {
      HWY_DYNAMIC_DISPATCH(add_f32)(out + begin, x.as<float>() + begin, end - begin);
    }
  });
}

void scale(Context&, const Tensor& x, float factor) {
  ZAYA_REQUIRE(x.contiguous());
  float* values = x.as<float>();
  parallel_ranges(x.size(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(scale_f32)(values + begin, end - begin, factor);
  });
}

void fill_normal(Context&, const Tensor& x, uint64_t seed, float mean, float deviation) {
  ZAYA_REQUIRE(x.contiguous());
  float* values = x.as<float>();
  parallel_ranges(x.size(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      values[i] = static_cast<float>(mean + deviation * normal(seed, static_cast<uint64_t>(i)));
    }
  });
}

}  // namespace zaya
#endif
