// Real functions for the cost models, made of +, -, *, / and square roots. IEEE 754 defines the
// rounding of each, so every compiler gives the same bits; pow and exp of libm may differ. Sources
// that use them are built with -ffp-contract=off, and nothing is built with -ffast-math.
#pragma once

#include <cmath>

namespace penstock::scheduler {

// x^(halves / 2), x >= 0.
inline double PowerOfHalves(double x, int halves) {
  double result = halves % 2 == 0 ? 1.0 : std::sqrt(x);
  for (int i = 0; i < halves / 2; ++i) result *= x;
  return result;
}

// (a^p + b^p)^(1/p) for p = halves / 2 >= 1 and a, b >= 0: nearly the maximum where they differ
// much, and smooth where they are equal. Newton's method on z^p = 1 + (least/most)^p, which is
// convex with its root in [1, 2], so it converges from above without overshooting.
inline double SmoothMaximum(double a, double b, int halves) {
  const double most = a > b ? a : b;
  const double least = a > b ? b : a;
  if (least <= 0) return most;
  const double p = halves / 2.0;
  const double target = 1.0 + PowerOfHalves(least / most, halves);
  double z = 1.0 + (target - 1.0) / p;
  for (int i = 0; i < 8; ++i) {
    const double below = PowerOfHalves(z, halves - 2);  // z^(p-1)
    z -= (below * z - target) / (p * below);
  }
  return most * z;
}

}  // namespace penstock::scheduler
