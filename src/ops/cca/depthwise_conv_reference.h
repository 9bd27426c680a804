#pragma once

#include <cstdint>

#include "ops/ragged.h"

namespace zaya::reference {

// See depthwise_conv.h. history may be null.
template <class S>
void depthwise_conv(S* out, const S* in, const S* history, const S* weight, const S* bias,
                    Ragged sequences, int64_t channels, int64_t taps, int64_t lead) {
  const int64_t past = taps - 1 + lead;  // rows of history per sequence
  for (int64_t s = 0; s < sequences.count(); ++s) {
    const S* in_s = in + sequences.begin(s) * channels;
    S* out_s = out + (sequences.begin(s) + s * lead) * channels;
    for (int64_t t = -lead; t < sequences.length(s); ++t) {
      for (int64_t c = 0; c < channels; ++c) {
        S sum = bias[c];
        for (int64_t i = 0; i < taps; ++i) {
          const int64_t u = t - (taps - 1) + i;
          if (u >= 0) {
            sum += weight[c * taps + i] * in_s[u * channels + c];
          } else if (history != nullptr) {
            sum += weight[c * taps + i] * history[(s * past + past + u) * channels + c];
          }
        }
        out_s[(t + lead) * channels + c] = sum;
      }
    }
  }
}

}  // namespace zaya::reference
