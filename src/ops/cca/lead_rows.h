#pragma once
// Rows between CCA's two convolutions: sequence s owns lead + length(s) of them, its `lead` rows
// before the first token included, and starts at row begin(s) + s * lead.

#include <algorithm>
#include <cstdint>

#include "ops/ragged.h"

namespace zaya {

struct LeadRows {
  Ragged sequences;
  int64_t lead = 0;

  int64_t begin(int64_t s) const { return sequences.begin(s) + s * lead; }
  int64_t length(int64_t s) const { return sequences.length(s) + lead; }
  int64_t count() const { return sequences.tokens() + sequences.count() * lead; }

  // The sequence that holds row, for a row in [0, count()).
  int64_t sequence_of(int64_t row) const {
    int64_t low = 0, high = sequences.count();  // begin(low) <= row < begin(high)
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (begin(middle) <= row ? low : high) = middle;
    }
    return low;
  }

  // f(s, r0, r1) for every stretch of [row_begin, row_end) inside one sequence; r counts from the
  // sequence's first row.
  template <class F>
  void for_each_run(int64_t row_begin, int64_t row_end, F&& f) const {
    if (row_begin >= row_end) return;
    for (int64_t s = sequence_of(row_begin); row_begin < row_end; ++s) {
      const int64_t end = std::min(row_end, begin(s) + length(s));
      if (row_begin < end) f(s, row_begin - begin(s), end - begin(s));
      row_begin = std::max(row_begin, end);
    }
  }
};

}  // namespace zaya
