#pragma once
// ZAYA1 balances experts without an auxiliary loss: each expert's bias follows the share of the
// global batch that chose it (zaya1.md section 2, "Balancing").

#include <cstdint>
#include <span>

#include "core/tensor.h"

namespace zaya {

// gradient [E + 1] f32 = p_e - 1 / E, p_e = counts[e] / sum of all counts, in double from integers;
// the skip slot's is 0. Zero everywhere when nothing was counted.
void balancing_gradient(const Tensor& gradient, std::span<const int64_t> counts);

// Entropy of the load over the E real experts, divided by log E: 1 when even, 0 when one takes all.
double load_entropy(std::span<const int64_t> counts);

}  // namespace zaya
