#pragma once
// dispatch.h in plain loops.

#include <cstdint>

namespace zaya::reference {

// order [T];  offsets [E + 2];  choice [T] in [0, E].
inline void sort_by_expert(int32_t* order, int32_t* offsets, const int32_t* choice, int64_t T,
                           int64_t E) {
  int32_t position = 0;
  for (int64_t e = 0; e <= E; ++e) {
    offsets[e] = position;
    for (int64_t t = 0; t < T; ++t) {
      if (choice[t] == e) order[position++] = static_cast<int32_t>(t);
    }
  }
  offsets[E + 1] = position;
}

// out[i] = in[order[i]] for i < count.   in [T, D];  out [T, D], untouched from row `count` on.
template <class S>
void gather_rows(S* out, const S* in, const int32_t* order, int64_t count, int64_t D) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < D; ++c) out[i * D + c] = in[order[i] * D + c];
  }
}

// out[order[i]] = in[i] for i < count, zero for the others.   out, in [T, D].
template <class S>
void scatter_rows(S* out, const S* in, const int32_t* order, int64_t count, int64_t T, int64_t D) {
  for (int64_t i = 0; i < T * D; ++i) out[i] = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < D; ++c) out[order[i] * D + c] = in[i * D + c];
  }
}

}  // namespace zaya::reference
