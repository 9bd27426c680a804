#pragma once
// The contract of embedding.h in plain loops.

#include <cstdint>

namespace zaya::reference {

// x [T, D], ids [T], table [V, D], bias and scale [D].
template <class S>
void embedding_forward(S* x, const int32_t* ids, const S* table, const S* bias, const S* scale,
                       int64_t T, int64_t D) {
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t d = 0; d < D; ++d) x[t * D + d] = (table[ids[t] * D + d] + bias[d]) * scale[d];
  }
}

}  // namespace zaya::reference
