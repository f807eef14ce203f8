#include "scheduler/cost/cost_terms.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "scheduler/cost/exact_math.h"
#include "scheduler/step/step_shape.h"

namespace penstock::scheduler {
namespace {

enum Column : std::size_t { kLinear, kTokens, kPrompt, kPairs, kDecode, kRows, kContext, kColumns };
using Vector = std::array<double, kColumns>;

struct Row {
  Vector columns{};  // kLinear depends on the knee
  double time = 0;   // ns
};

struct Fit {
  Vector coefficients{};
  double knee = 1;
  int sharpness2 = 4;
  double error = 0;  // sum of squared relative errors
};

Row MakeRow(const StepTimeSample& sample) {
  StepShape step;
  // A step without decode rows has the context length of its chunk.
  const bool decodes = sample.decode_rows > 0;
  if (sample.prefill_tokens > 0) {
    step.AddChunk(decodes ? 0 : sample.context_tokens, sample.prefill_tokens);
  }
  if (decodes) step.AddDecode(sample.context_tokens, sample.decode_rows);
  Row row;
  row.time = static_cast<double>(sample.time.count());
  row.columns[kTokens] = static_cast<double>(step.Tokens());
  row.columns[kPrompt] = sample.prefill_tokens > 0 ? 1 : 0;
  row.columns[kPairs] = static_cast<double>(step.prompt_pairs2);
  row.columns[kDecode] = decodes ? 1 : 0;
  row.columns[kRows] = static_cast<double>(step.decode_rows);
  row.columns[kContext] = static_cast<double>(step.decode_context);
  return row;
}

double LinearShape(double tokens, double knee, int sharpness2) {
  return SmoothMaximum(1.0, tokens / knee, sharpness2);
}

// Normal equations of the relative error, columns scaled to length 1: G x = g.
struct NormalEquations {
  std::array<Vector, kColumns> gram{};
  Vector target{};
  Vector scale{};
};

NormalEquations MakeEquations(const std::vector<Row>& rows) {
  NormalEquations normal;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      const double left = row.columns[i] / row.time;
      normal.target[i] += left;
      for (std::size_t j = 0; j < kColumns; ++j) {
        normal.gram[i][j] += left * (row.columns[j] / row.time);
      }
    }
  }
  for (std::size_t i = 0; i < kColumns; ++i) normal.scale[i] = std::sqrt(normal.gram[i][i]);
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (normal.scale[i] == 0) continue;
    normal.target[i] /= normal.scale[i];
    for (std::size_t j = 0; j < kColumns; ++j) {
      if (normal.scale[j] != 0) normal.gram[i][j] /= normal.scale[i] * normal.scale[j];
    }
  }
  return normal;
}

// Gaussian elimination on the columns in use. The ridge prevents huge coefficients of opposite
// signs for columns that the table cannot distinguish.
Vector SolveFor(const NormalEquations& normal, const std::vector<std::size_t>& used) {
  constexpr double kRidge = 1e-9;
  std::array<Vector, kColumns> gram{};
  Vector target{};
  const std::size_t n = used.size();
  for (std::size_t i = 0; i < n; ++i) {
    target[i] = normal.target[used[i]];
    for (std::size_t j = 0; j < n; ++j) gram[i][j] = normal.gram[used[i]][used[j]];
    gram[i][i] += kRidge;
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const double factor = gram[j][i] / gram[i][i];
      for (std::size_t k = i; k < n; ++k) gram[j][k] -= factor * gram[i][k];
      target[j] -= factor * target[i];
    }
  }
  Vector solved{};
  for (std::size_t i = n; i-- > 0;) {
    double rest = target[i];
    for (std::size_t j = i + 1; j < n; ++j) rest -= gram[i][j] * solved[j];
    solved[i] = rest / gram[i][i];
  }
  return solved;
}

Vector SolveNotNegative(const NormalEquations& normal) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (normal.scale[i] > 0) used.push_back(i);
  }
  Vector coefficients{};
  while (!used.empty()) {
    const Vector solved = SolveFor(normal, used);
    const auto least = std::min_element(solved.begin(), solved.begin() + used.size());
    if (*least >= 0) {
      for (std::size_t i = 0; i < used.size(); ++i) {
        coefficients[used[i]] = solved[i] / normal.scale[used[i]];
      }
      break;
    }
    used.erase(used.begin() + (least - solved.begin()));
  }
  return coefficients;
}

Fit FitAt(std::vector<Row>& rows, double knee, int sharpness2) {
  for (Row& row : rows) {
    row.columns[kLinear] = LinearShape(row.columns[kTokens], knee, sharpness2);
  }
  Fit fit;
  fit.knee = knee;
  fit.sharpness2 = sharpness2;
  fit.coefficients = SolveNotNegative(MakeEquations(rows));
  for (const Row& row : rows) {
    double predicted = 0;
    for (std::size_t i = 0; i < kColumns; ++i) {
      predicted += fit.coefficients[i] * row.columns[i];
    }
    const double error = predicted / row.time - 1;
    fit.error += error * error;
  }
  return fit;
}

std::uint64_t ToFixed(double nanoseconds) {
  constexpr double kMost = 1e18;
  const double units = nanoseconds * (1 << CostTerms::kFractionBits);
  return static_cast<std::uint64_t>(std::min(units, kMost) + 0.5);
}

CostTerms ToTerms(const Fit& fit) {
  const Vector& c = fit.coefficients;
  CostTerms terms;
  for (std::size_t knot = 0; knot < CostTerms::kKnots; ++knot) {
    const auto tokens = static_cast<double>(KnotTokens(knot));
    terms.linear[knot] =
        ToFixed(c[kLinear] * LinearShape(tokens, fit.knee, fit.sharpness2) + c[kTokens] * tokens);
  }
  terms.prompt_step = ToFixed(c[kPrompt]);
  terms.prompt_pair2 = ToFixed(c[kPairs]);
  terms.decode_step = ToFixed(c[kDecode]);
  terms.decode_row = ToFixed(c[kRows]);
  terms.decode_context = ToFixed(c[kContext]);
  return terms;
}

}  // namespace

std::optional<CostTerms> FitCost(const Calibration& calibration) {
  std::vector<Row> rows;
  for (const StepTimeSample& sample : calibration.samples) {
    const bool empty = sample.prefill_tokens == 0 && sample.decode_rows == 0;
    if (sample.time > Duration(0) && !empty) rows.push_back(MakeRow(sample));
  }
  if (rows.size() < 2) return std::nullopt;
  // Thirty fits: first the octave of the knee, then half octaves and the sharpness. A later fit
  // must be clearly better, so that noise does not decide.
  std::optional<Fit> best;
  const auto try_at = [&rows, &best](double knee, int sharpness2) {
    const Fit fit = FitAt(rows, knee, sharpness2);
    if (!best || fit.error < 0.999 * best->error - 1e-9) best = fit;
  };
  for (double knee = 1; knee <= 16384; knee *= 2) try_at(knee, 5);
  const double octave = best->knee;
  for (const int sharpness2 : {4, 5, 3, 7, 10}) {
    for (const double step : {1.0, 0.7071067811865476, 1.4142135623730951}) {
      try_at(octave * step, sharpness2);
    }
  }
  return ToTerms(*best);
}

}  // namespace penstock::scheduler
