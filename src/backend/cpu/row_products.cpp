#include "backend/cpu/row_products.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "core/ceil_div.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/row_products.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>

#include "backend/cpu/quantized_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// Bytes of a row of x as products with weights of this format read it.
int64_t prepared_bytes(const RowProduct& p) {
  const int64_t K = p.x.columns();
  if (p.weight.quantized()) return row_bytes(p.weight.format(), K);
  return round_up(K * static_cast<int64_t>(sizeof(float)), kMostVectorBytes);
}

void prepare_row(char* memory, const RowProduct& p, int64_t t) {
  const int64_t K = p.x.columns();
  visit_activation(p.x.dtype, [&]<class T>() {
    const T* x = p.x.row<T>(t);
    if (!p.weight.quantized()) {
      float* out = reinterpret_cast<float*>(memory);
      for_each_vector(K, [&](auto d, int64_t i) { store(load(d, x + i), d, out + i); });
    } else if (multiplies_bytes()) {
      quantize_row<std::true_type>(memory, p.weight.format(), x, K);
    } else {
      quantize_row<std::false_type>(memory, p.weight.format(), x, K);
    }
  });
}

// How far ahead of what is read the next is fetched, into the rows that follow: the processor
// itself does not look past a page.
constexpr int64_t kAhead = 4096;

// Into the second cache: the first is full of x, and its few pending lines are for what is at work.
HWY_INLINE void fetch(const void* p) { __builtin_prefetch(p, 0, 1); }

// Sum of w[i] x[i].
template <class T>
float dot(const T* w, const float* x, int64_t K) {
  const FullTag d;
  const OneTag one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  auto rest = hn::Zero(one);
  int64_t i = 0;
  for (; i + 4 * lanes <= K; i += 4 * lanes) {
    const char* ahead = reinterpret_cast<const char*>(w + i) + kAhead;
    for (int64_t line = 0; line < 4 * lanes * static_cast<int64_t>(sizeof(T)); line += 64)
      fetch(ahead + line);
    a = hn::MulAdd(load(d, w + i), load(d, x + i), a);
    b = hn::MulAdd(load(d, w + i + lanes), load(d, x + i + lanes), b);
    c = hn::MulAdd(load(d, w + i + 2 * lanes), load(d, x + i + 2 * lanes), c);
    e = hn::MulAdd(load(d, w + i + 3 * lanes), load(d, x + i + 3 * lanes), e);
  }
  for (; i + lanes <= K; i += lanes) a = hn::MulAdd(load(d, w + i), load(d, x + i), a);
  for (; i < K; ++i) rest = hn::MulAdd(load(one, w + i), load(one, x + i), rest);
  const auto sum = hn::Add(hn::Add(a, b), hn::Add(c, e));
  return hn::GetLane(hn::SumOfLanes(d, sum)) + hn::GetLane(rest);
}

#if HWY_TARGET == HWY_SCALAR
template <class HasDots, WeightFormat kFormat>
float dot_codes(const Weight& w, int64_t n, const QuantizedRow& row, int64_t K) {
  constexpr bool kHalves = kFormat == WeightFormat::int4;
  const int64_t plane = plane_bytes(kFormat, K), bytes = kHalves ? K / 2 : K;
  constexpr int64_t kGroupBytes = kHalves ? 16 : 32;
  const char* codes = w.values.address(n);
  float sum = 0;
  for (int64_t g = 0; g < bytes / kGroupBytes; ++g) {
    int32_t dots = 0;
    for (int64_t i = g * kGroupBytes; i < (g + 1) * kGroupBytes; ++i) {
      if (kHalves)
        dots += ((codes[i] & 15) - 8) * row.codes[i] +
                ((static_cast<uint8_t>(codes[i]) >> 4) - 8) * row.codes[plane + i];
      else
        dots += codes[i] * row.codes[i];
    }
    const auto scale = static_cast<float>(w.scales.row<bf16>(n)[g]);
    sum += static_cast<float>(dots) * (scale * row.scales[g * kGroupBytes / 4]);
  }
  return sum;
}
#else
// The scales of the groups that a vector of codes holds, each in all lanes of its group.
template <int kGroupLanes>
HWY_INLINE hn::Vec<FullTag> spread_scales(const bf16* scales) {
  const FullTag d;
#if HWY_TARGET <= HWY_AVX3
  // Word 2 j + 1, the upper half of lane j, takes scale j / kGroupLanes; the lower half is zero.
  const auto words = hn::ShiftLeft<16>(
      hn::ShiftRight < kGroupLanes == 4 ? 2 : 3 > (hn::Iota(hn::RebindToUnsigned<FullTag>(), 0)));
  std::conditional_t<kGroupLanes == 4, uint64_t, uint32_t> few;
  std::memcpy(&few, scales, sizeof(few));
  const __m512i all = kGroupLanes == 4 ? _mm512_set1_epi64(static_cast<int64_t>(few))
                                       : _mm512_set1_epi32(static_cast<int32_t>(few));
  const __m512i spread = _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, words.raw, all);
  return hn::Vec<FullTag>{_mm512_castsi512_ps(spread)};
#else
  if constexpr (kGroupLanes == 8) return hn::Set(d, static_cast<float>(scales[0]));
  const auto first = hn::Set(d, static_cast<float>(scales[0]));
  const auto second = hn::Set(d, static_cast<float>(scales[1]));
  return hn::IfThenElse(hn::FirstN(d, kGroupLanes), first, second);
#endif
}

// One vector of codes: its lanes' sums times their scales, added to `sum`.
template <class HasDots, WeightFormat kFormat>
HWY_INLINE hn::Vec<FullTag> add_codes(hn::Vec<FullTag> sum, const uint8_t* codes,
                                      const bf16* scales, const QuantizedRow& row, int64_t plane,
                                      int64_t i) {
  const FullTag d;
  const ByteTag d8;
  const auto* x = reinterpret_cast<const uint8_t*>(row.codes) + i;
  const Bytes c = hn::LoadU(d8, codes);
  Ints dots = hn::LoadU(IntTag(), row.corrections + i / 4);
  hn::Vec<FullTag> scale;
  if constexpr (kFormat == WeightFormat::int8) {
    dots = add_dots<HasDots>(dots, hn::Xor(c, hn::Set(d8, 0x80)), hn::LoadU(d8, x));
    scale = spread_scales<8>(scales);
  } else {
    const hn::Repartition<uint16_t, ByteTag> d16;
    const auto mask = hn::Set(d8, 15);
    const auto high = hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, c)));
    dots = add_small_dots<HasDots>(dots, hn::And(c, mask), hn::LoadU(d8, x));
    dots = add_small_dots<HasDots>(dots, hn::And(high, mask), hn::LoadU(d8, x + plane));
    scale = spread_scales<4>(scales);
  }
  return hn::MulAdd(hn::ConvertTo(d, dots), hn::Mul(scale, hn::LoadU(d, row.scales + i / 4)), sum);
}

template <class HasDots, WeightFormat kFormat>
float dot_codes(const Weight& w, int64_t n, const QuantizedRow& row, int64_t K) {
  const FullTag d;
  constexpr int64_t kGroupBytes = kFormat == WeightFormat::int8 ? 32 : 16;
  const int64_t bytes = kFormat == WeightFormat::int8 ? K : K / 2;
  const int64_t plane = plane_bytes(kFormat, K);
  const int64_t step = static_cast<int64_t>(hn::Lanes(ByteTag()));
  const auto* codes = reinterpret_cast<const uint8_t*>(w.values.address(n));
  const bf16* scales = w.scales.row<bf16>(n);
  const auto add = [&](hn::Vec<FullTag> sum, const uint8_t* c, const bf16* s, int64_t i) {
    return add_codes<HasDots, kFormat>(sum, c, s, row, plane, i);
  };
  const auto* later_scales = reinterpret_cast<const char*>(scales) + kAhead / kGroupBytes * 2;
  for (int64_t line = 0; line < w.scales.columns() * 2; line += 64) fetch(later_scales + line);
  auto even = hn::Zero(d), odd = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * step <= bytes; i += 2 * step) {
    fetch(codes + i + kAhead);
    fetch(codes + i + step + kAhead);
    even = add(even, codes + i, scales + i / kGroupBytes, i);
    odd = add(odd, codes + i + step, scales + (i + step) / kGroupBytes, i + step);
  }
  for (; i + step <= bytes; i += step) even = add(even, codes + i, scales + i / kGroupBytes, i);
  if (i < bytes) {  // what is left of the row, without reading past it
    uint8_t c[kMostVectorBytes] = {};
    bf16 s[kMostVectorBytes / kGroupBytes] = {};
    std::memcpy(c, codes + i, static_cast<size_t>(bytes - i));
    std::memcpy(s, scales + i / kGroupBytes, sizeof(bf16) * ((bytes - i) / kGroupBytes));
    odd = add(odd, c, s, i);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}
#endif

// Outputs [begin, end) of every row of x. A row of the weight stays in the first cache while the
// rows of x pass.
template <class F>
void write_outputs(const RowProduct& p, int64_t begin, int64_t end, F&& dot_of) {
  const int64_t T = p.x.rows();
  visit_activation(p.y.dtype, [&]<class T_>() {
    for (int64_t n = begin; n < end; ++n)
      for (int64_t t = 0; t < T; ++t) p.y.row<T_>(t)[n] = T_(dot_of(n, t));
  });
}

template <class HasDots, WeightFormat kFormat>
void multiply_codes(const RowProduct& p, char* prepared, int64_t begin, int64_t end) {
  const int64_t K = p.x.columns(), stride = row_bytes(kFormat, K);
  write_outputs(p, begin, end, [&](int64_t n, int64_t t) {
    return dot_codes<HasDots, kFormat>(p.weight, n, row_at(prepared + t * stride, kFormat, K), K);
  });
}

template <class HasDots>
void multiply_any_codes(const RowProduct& p, char* prepared, int64_t begin, int64_t end) {
  if (p.weight.format() == WeightFormat::int8)
    multiply_codes<HasDots, WeightFormat::int8>(p, prepared, begin, end);
  else
    multiply_codes<HasDots, WeightFormat::int4>(p, prepared, begin, end);
}

void multiply(const RowProduct& p, char* prepared, int64_t begin, int64_t end) {
  if (p.weight.quantized()) {
    if (multiplies_bytes()) return multiply_any_codes<std::true_type>(p, prepared, begin, end);
    return multiply_any_codes<std::false_type>(p, prepared, begin, end);
  }
  const int64_t K = p.x.columns(), stride = prepared_bytes(p);
  visit_activation(p.weight.values.dtype, [&]<class T>() {
    write_outputs(p, begin, end, [&](int64_t n, int64_t t) {
      return dot(p.weight.values.row<T>(n), reinterpret_cast<float*>(prepared + t * stride), K);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(prepared_bytes);
HWY_EXPORT(prepare_row);
HWY_EXPORT(multiply);

// Rows of one item of work: a few items a thread, so that one that is held up leaves some to
// others, and each a long stream. A row is one thread's whatever their number.
int64_t item_rows(const Weight& w) {
  constexpr int64_t kItemsAThread = 4;
  constexpr int64_t kLeastBytes = 16 << 10;
  const int64_t least = kLeastBytes * w.rows() / std::max<int64_t>(w.bytes(), 1);
  return std::max({int64_t{1}, least, ceil_div(w.rows(), kItemsAThread * thread_count())});
}

void check(const RowProduct& p) {
  const int64_t K = p.x.columns();
  ZAYA_REQUIRE(p.y.rows() == p.x.rows() && p.y.columns() == p.weight.rows());
  ZAYA_REQUIRE(p.weight.columns() == K && (!p.weight.quantized() || quantizable(K)));
}

// Where each product's rows of x lie, prepared, and how its outputs are cut into items of work.
struct Place {
  int64_t prepared = 0;
  int64_t first_item = 0;
  int64_t rows = 0;  // of an item: said once, for threads may count each other differently
};

bool same_rows(const RowProduct& a, const RowProduct& b) {
  const auto kind = [](const Weight& w) { return w.quantized() ? w.format() : WeightFormat::f32; };
  return a.x.data == b.x.data && a.x.dtype == b.x.dtype && a.x.shape == b.x.shape &&
         a.x.row_stride == b.x.row_stride && kind(a.weight) == kind(b.weight);
}

}  // namespace

void row_products(std::span<const RowProduct> products) {
  struct Places;
  struct Prepared;
  const auto count = static_cast<int64_t>(products.size());
  Place* places = thread_buffer<Places, Place>(count + 1);
  int64_t bytes = 0, items = 0;
  const auto shared = [&](int64_t i) { return i > 0 && same_rows(products[i - 1], products[i]); };
  for (int64_t i = 0; i < count; ++i) {
    const RowProduct& p = products[i];
    check(p);
    places[i] = {shared(i) ? places[i - 1].prepared : bytes, items, item_rows(p.weight)};
    if (!shared(i)) bytes += p.x.rows() * HWY_DYNAMIC_DISPATCH(prepared_bytes)(p);
    items += ceil_div(p.weight.rows(), places[i].rows);
  }
  places[count].first_item = items;
  char* prepared = thread_buffer<Prepared, char>(bytes);
  for (int64_t i = 0; i < count; ++i) {
    if (shared(i)) continue;
    const RowProduct& p = products[i];
    const int64_t stride = HWY_DYNAMIC_DISPATCH(prepared_bytes)(p);
    parallel_for(p.x.rows(), [&](int64_t t) {
      HWY_DYNAMIC_DISPATCH(prepare_row)(prepared + places[i].prepared + t * stride, p, t);
    });
  }
  parallel_for(items, [&](int64_t item) {
    const Place* place = std::upper_bound(
        places, places + count + 1, item,
        [](int64_t value, const Place& other) { return value < other.first_item; });
    const int64_t i = place - places - 1, rows = places[i].rows;
    const int64_t begin = (item - places[i].first_item) * rows;
    HWY_DYNAMIC_DISPATCH(multiply)
    (products[i], prepared + places[i].prepared, begin,
     std::min(begin + rows, products[i].weight.rows()));
  });
}

}  // namespace zaya
#endif
