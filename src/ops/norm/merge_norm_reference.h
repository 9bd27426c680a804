#pragma once
// The contract of merge_norm.h in plain loops.

#include "ops/norm/rms_norm_reference.h"

namespace zaya::reference {

// y, h, o, x [T, D]; hb, hs, rb, rs [D]: hidden and residual bias and scale; weight [D].
template <class S>
void merge_norm_forward(S* y, S* h, const S* o, const S* x, const S* hb, const S* hs, const S* rb,
                        const S* rs, const S* weight, int64_t T, int64_t D, double eps) {
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t d = 0; d < D; ++d) {
      y[t * D + d] = (o[t * D + d] + hb[d]) * hs[d] + (x[t * D + d] + rb[d]) * rs[d];
    }
  }
  rms_norm_forward(h, y, weight, T, D, eps);
}

}  // namespace zaya::reference
