// A vectorised error function, included once per instruction set (Highway's foreach_target).

#if defined(ZAYA_ERF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZAYA_ERF_INL_H_
#undef ZAYA_ERF_INL_H_
#else
#define ZAYA_ERF_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// erf(x) within 2e-7, absolute and relative; +-1 beyond |x| = 3.93; NaN stays NaN.
//   |x| < 1    x P(x^2)
//   otherwise  1 - exp(-|x| Q(|x|)), since -log(erfc(x)) / x is smooth and an error in it is scaled
//              by erfc(x) in the result
// P and Q were fitted by Lawson's iteratively reweighted least squares in double at 3000 Chebyshev
// nodes against libm's erf and erfc: P on [0, 1] for the relative error of erf (1.2e-9 in exact
// arithmetic), Q on [1, 3.93] for the absolute error of erf (3.6e-10). Rounding is the rest.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  const auto c = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  const V a = hn::Abs(x);
  const V t = hn::Mul(x, x);
  V p = hn::MulAdd(t, c(7.85387962e-05), c(-0.000801019962));
  p = hn::MulAdd(t, p, c(0.00518832844));
  p = hn::MulAdd(t, p, c(-0.0268538124));
  p = hn::MulAdd(t, p, c(0.112835852));
  p = hn::MulAdd(t, p, c(-0.376126258));
  p = hn::MulAdd(t, p, c(1.12837917));
  const V near_zero = hn::Mul(a, p);

  const V b = hn::Min(a, c(3.93));
  V q = hn::MulAdd(b, c(1.41336684e-05), c(-0.000352330479));
  q = hn::MulAdd(b, q, c(0.00376465341));
  q = hn::MulAdd(b, q, c(-0.0240254948));
  q = hn::MulAdd(b, q, c(0.106549087));
  q = hn::MulAdd(b, q, c(0.634958307));
  q = hn::MulAdd(b, q, c(1.12869716));
  const V tail = hn::Sub(c(1), hn::Exp(d, hn::Neg(hn::Mul(b, q))));

  // The comparison is false for NaN, so that NaN takes the polynomial and stays.
  return hn::CopySign(hn::IfThenElse(hn::Ge(a, c(1)), tail, near_zero), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#endif
