#pragma once
// The gradient oracle: a reference op is templated on its scalar, and run with complex numbers
// whose imaginary part is a step of 1e-50 it returns the exact derivative in the imaginary part
// (Squire and Trapp 1998), without the cancellation of differences. Functions that are not
// analytic (max, abs) are taken on the real part.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "core/tensor.h"

namespace zaya::test {

using Complex = std::complex<double>;
inline constexpr double kStep = 1e-50;

template <class S>
using Values = std::vector<S>;

// n numbers, normal(0, deviation), the same on every machine.
inline std::vector<double> random_values(int64_t n, uint64_t seed, double deviation = 1.0) {
  std::mt19937_64 engine(seed);
  std::vector<double> values(n);
  for (double& v : values) {
    const double a = (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53;
    const double b = static_cast<double>(engine() >> 11) * 0x1p-53;
    v = deviation * std::sqrt(-2 * std::log(a)) * std::cos(6.283185307179586 * b);
  }
  return values;
}

template <class S>
std::vector<S> cast(const std::vector<double>& values) {
  return std::vector<S>(values.begin(), values.end());
}
template <>
inline std::vector<bf16> cast<bf16>(const std::vector<double>& values) {
  std::vector<bf16> out;
  for (double v : values) out.emplace_back(static_cast<float>(v));
  return out;
}
inline std::vector<double> widen(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}
inline std::vector<double> widen(const std::vector<bf16>& values) {
  std::vector<double> out;
  for (bf16 v : values) out.push_back(static_cast<float>(v));
  return out;
}

// The contiguous tensor over a vector. The vector must outlive it.
template <class T>
Tensor view(std::vector<T>& values, Shape shape) {
  EXPECT_EQ(static_cast<int64_t>(values.size()), shape.size());
  return Tensor(values.data(), DTypeOf<T>::value, shape);
}

// d loss / d inputs[which][i] for every i, where loss is a real function of several arrays written
// for complex numbers.
using ComplexLoss = std::function<Complex(const std::vector<std::vector<Complex>>&)>;

inline std::vector<double> complex_step_gradient(const ComplexLoss& loss,
                                                 const std::vector<std::vector<double>>& inputs,
                                                 size_t which) {
  std::vector<std::vector<Complex>> at;
  for (const auto& input : inputs) at.emplace_back(input.begin(), input.end());
  std::vector<double> gradient(inputs[which].size());
  for (size_t i = 0; i < gradient.size(); ++i) {
    at[which][i] = Complex(inputs[which][i], kStep);
    gradient[i] = loss(at).imag() / kStep;
    at[which][i] = inputs[which][i];
  }
  return gradient;
}

// |a - b| / |b| in the Frobenius norm (|a - b| when b is zero).
inline double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  if (!std::isfinite(difference)) return INFINITY;
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace zaya::test
