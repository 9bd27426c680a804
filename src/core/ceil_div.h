#pragma once

#include <cstdint>

namespace zaya {

// Of a >= 0 and b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// The smallest multiple of `unit` that is no less than a.
constexpr int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

}  // namespace zaya
