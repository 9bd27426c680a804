#pragma once

#include <type_traits>

namespace zaya {

// a / b rounded up, for a >= 0 and b > 0; no sum in it that could overflow.
template <class T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return a / b + (a % b != 0 ? 1 : 0);
}
// The smallest multiple of `unit` that is no less than a.
template <class T>
constexpr T round_up(T a, std::type_identity_t<T> unit) {
  return ceil_div(a, unit) * unit;
}

}  // namespace zaya
