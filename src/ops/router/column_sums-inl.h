// Sums over rows into a gradient of one row, included once per instruction set.

#if defined(ZAYA_COLUMN_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZAYA_COLUMN_SUMS_INL_H_
#undef ZAYA_COLUMN_SUMS_INL_H_
#else
#define ZAYA_COLUMN_SUMS_INL_H_
#endif

#include <algorithm>

#include "backend/cpu/threads.h"
#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {

// out[n] += sum over t in [0, rows) of f(d, t, n), in the order of t whatever the threads: each
// item is a strip of columns (two cache lines) and walks every row.
template <class F>
void add_column_sums(float* out, int64_t rows, int64_t columns, F&& f) {
  constexpr int64_t kStrip = 32;
  parallel_ranges(columns, kStrip, [&](int64_t begin, int64_t end) {
    alignas(64) float sums[kStrip] = {};
    for (int64_t t = 0; t < rows; ++t) {
      for_each_vector(end - begin, [&](auto d, int64_t i) HWY_ATTR {
        store(hn::Add(load(d, sums + i), f(d, t, begin + i)), d, sums + i);
      });
    }
    for (int64_t i = begin; i < end; ++i) out[i] += sums[i - begin];
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#endif
