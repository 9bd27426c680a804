#pragma once
// The contract of residual_merge.h in plain loops.

#include <cstdint>

namespace zaya::reference {

// y, o, x [T, D]; hb, hs, rb, rs [D]: hidden and residual bias and scale.
template <class S>
void residual_merge_forward(S* y, const S* o, const S* x, const S* hb, const S* hs, const S* rb,
                            const S* rs, int64_t T, int64_t D) {
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t d = 0; d < D; ++d) {
      y[t * D + d] = (o[t * D + d] + hb[d]) * hs[d] + (x[t * D + d] + rb[d]) * rs[d];
    }
  }
}

}  // namespace zaya::reference
