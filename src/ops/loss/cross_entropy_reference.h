#pragma once
// The contract of cross_entropy.h in plain loops.

#include <cmath>
#include <complex>
#include <cstdint>

#include "ops/scalar.h"

namespace zaya::reference {

// losses [R], logits [R, V], labels [R]; a label of -100 is not counted.
template <class S>
void cross_entropy_forward(S* losses, const S* logits, const int32_t* labels, int64_t R,
                           int64_t V) {
  using std::exp;
  using std::log;
  for (int64_t r = 0; r < R; ++r) {
    losses[r] = 0;
    if (labels[r] == -100) continue;
    const S* row = logits + r * V;
    double max = real(row[0]);
    for (int64_t v = 1; v < V; ++v) max = real(row[v]) > max ? real(row[v]) : max;
    S sum = 0;
    for (int64_t v = 0; v < V; ++v) sum += exp(row[v] - max);
    losses[r] = log(sum) + max - row[labels[r]];
  }
}

}  // namespace zaya::reference
