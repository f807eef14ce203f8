// The numbers of the cost model, and how they are fitted to a warm-up table.
//
//   step     linear(tokens) + prompts (if any) + decodes (if any)
//   linear   a * (1 + (tokens / knee)^p)^(1/p) + b * tokens: reading the weights once, then
//            arithmetic
//   prompts  one launch + query-key pairs
//   decodes  one launch + rows + positions read
//
// Each (knee, p) of a grid is tried. The other coefficients are then linear, and weighted least
// squares of the relative error finds them. Negative coefficients are dropped one by one, so that
// more work never makes a step cheaper and a prediction can be inverted by bisection. The best fit
// of the grid is rounded to integers.
//
// The fit uses only operations that IEEE 754 defines exactly (exact_math.h), and predictions are
// integer, so results are reproducible.
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

  // linear(KnotTokens(i)). Straight lines connect the knots; the last line has no end.
  std::array<std::uint64_t, kKnots> linear{};
  std::uint64_t prompt_step = 0;
  std::uint64_t prompt_pair2 = 0;  // per half query-key pair (StepShape::prompt_pairs2)
  std::uint64_t decode_step = 0;
  std::uint64_t decode_row = 0;
  std::uint64_t decode_context = 0;
  friend bool operator==(const CostTerms&, const CostTerms&) = default;
};

// 0 to 3, then four knots for each octave: 4 5 6 7 8 10 12 14 16 20 ... The largest is 3.7 million.
constexpr std::uint64_t KnotTokens(std::size_t knot) {
  if (knot < 8) return knot;
  return (4 + knot % 4) << (knot / 4 - 1);
}

// nullopt if the table has fewer than two step times.
std::optional<CostTerms> FitCost(const Calibration& calibration);

}  // namespace penstock::scheduler
