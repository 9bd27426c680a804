#pragma once

#include <cstdint>

#include "ops/ragged.h"

namespace zaya::reference {

// See value_shift.h. previous may be null.
template <class S>
void value_shift(S* out, const S* in, const S* previous, Ragged sequences, int64_t channels) {
  for (int64_t s = 0; s < sequences.count(); ++s) {
    for (int64_t t = sequences.begin(s); t < sequences.end(s); ++t) {
      for (int64_t c = 0; c < channels; ++c) {
        const bool first = t == sequences.begin(s);
        out[t * channels + c] = !first      ? in[(t - 1) * channels + c]
                                : !previous ? S(0)
                                            : previous[s * channels + c];
      }
    }
  }
}

}  // namespace zaya::reference
