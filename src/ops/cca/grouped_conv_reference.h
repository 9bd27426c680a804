#pragma once

#include <cstdint>

#include "ops/ragged.h"

namespace zaya::reference {

// See grouped_conv.h.
template <class S>
void grouped_conv(S* out, const S* in, const S* weight, const S* bias, Ragged sequences,
                  int64_t channels, int64_t group, int64_t taps) {
  for (int64_t s = 0; s < sequences.count(); ++s) {
    for (int64_t t = sequences.begin(s); t < sequences.end(s); ++t) {
      const S* window = in + (t + s * (taps - 1)) * channels;
      for (int64_t o = 0; o < channels; ++o) {
        const int64_t first = o / group * group;
        S sum = bias[o];
        for (int64_t i = 0; i < taps; ++i)
          for (int64_t c = 0; c < group; ++c)
            sum += weight[(o * group + c) * taps + i] * window[i * channels + first + c];
        out[t * channels + o] = sum;
      }
    }
  }
}

}  // namespace zaya::reference
