#pragma once
// depth_average.h in plain loops.

#include <cstdint>

namespace zaya::reference {

// r, down [T, R];  bias [R];  previous [T, R] and gamma [R]: null in block 0.
template <class S>
void depth_average(S* r, const S* down, const S* bias, const S* previous, const S* gamma, int64_t T,
                   int64_t R) {
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t c = 0; c < R; ++c) {
      r[t * R + c] = down[t * R + c] + bias[c];
      if (previous) r[t * R + c] += previous[t * R + c] * gamma[c];
    }
  }
}

}  // namespace zaya::reference
