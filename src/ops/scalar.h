#pragma once
// What the reference ops need of a scalar beyond arithmetic, for double and for the complex
// numbers of the gradient oracle (tests/support/oracle.h). Choices (max, argmax) look at the real
// part.

#include <cmath>
#include <complex>

namespace zaya::reference {

inline double real(double x) { return x; }
inline double real(const std::complex<double>& x) { return x.real(); }

inline double erf(double x) { return std::erf(x); }
// First order in the imaginary part, which the oracle keeps at 1e-50.
inline std::complex<double> erf(const std::complex<double>& x) {
  constexpr double kTwoOverSqrtPi = 1.1283791670955126;
  return {std::erf(x.real()), kTwoOverSqrtPi * std::exp(-x.real() * x.real()) * x.imag()};
}

}  // namespace zaya::reference
