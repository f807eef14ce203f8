// The calibrated cost model's numbers, and how they are fitted to a warm-up table.
//
//   step = linear(tokens) + prompts (if any) + decodes (if any)
//   linear   a * (1 + (tokens / knee)^p)^(1/p) + b * tokens: weights streamed once, then arithmetic
//   prompts  one launch + query-key pairs
//   decodes  one launch + rows + positions read
//
// For each (knee, p) of a grid the rest is linear in its coefficients: weighted least squares of
// the relative error, coefficients that come out negative dropped one by one (no step gets cheaper
// by more work, so predictions can be bisected). The best of the grid becomes whole numbers.
//
// Reproducible: the fit uses only operations that IEEE 754 fixes (exact_math.h), prediction is
// integer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/plan/group.h"

namespace penstock::scheduler {

// All times in units of 2^-20 ns.
struct CostTerms {
  static constexpr int kFractionBits = 20;
  static constexpr std::size_t kKnots = 84;

  // linear(KnotTokens(i)); straight lines between, the last one goes on.
  std::array<std::uint64_t, kKnots> linear{};
  std::uint64_t prompt_step = 0;
  std::uint64_t prompt_pair2 = 0;  // per half query-key pair (StepShape::prompt_pairs2)
  std::uint64_t decode_step = 0;
  std::uint64_t decode_row = 0;
  std::uint64_t decode_context = 0;
  friend bool operator==(const CostTerms&, const CostTerms&) = default;
};

// 0 … 3, then four knots per octave: 4 5 6 7 8 10 12 14 16 20 … (largest: 3.7 million).
constexpr std::uint64_t KnotTokens(std::size_t knot) {
  if (knot < 8) return knot;
  return (4 + knot % 4) << (knot / 4 - 1);
}

// Nothing when the table has no time to fit. Two samples give a line; the more, the better.
std::optional<CostTerms> FitCost(const Calibration& calibration);

}  // namespace penstock::scheduler
