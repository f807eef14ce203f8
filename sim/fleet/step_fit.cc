#include "sim/fleet/step_fit.h"

#include <algorithm>
#include <cmath>

#include "scheduler/cost/cost_model.h"
#include "sim/random.h"

namespace penstock::sim {
namespace {

struct Line {
  double base = 0;
  double factor = 1;
};

struct Point {
  double predicted = 0;
  double actual = 0;
};

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A step that waited for something else, such as a stopped process, says nothing about the others.
std::vector<Point> WithoutOutliers(const std::vector<Point>& points) {
  std::vector<double> ratios;
  for (const Point& point : points) ratios.push_back(point.actual / point.predicted);
  const double middle = Median(ratios);
  std::vector<Point> kept;
  for (const Point& point : points) {
    const double ratio = point.actual / point.predicted / middle;
    if (ratio < 4 && ratio > 0.25) kept.push_back(point);
  }
  return kept;
}

// Minimises the sum of ((base + factor * predicted - actual) / predicted)^2, with neither below 0.
Line Fit(const std::vector<Point>& points) {
  double w = 0;
  double wx = 0;
  double wy = 0;
  double ratios = 0;
  for (const auto& [x, y] : points) {
    w += 1 / (x * x);
    wx += 1 / x;
    wy += y / (x * x);
    ratios += y / x;
  }
  const auto n = static_cast<double>(points.size());
  const double determinant = w * n - wx * wx;
  if (determinant > 1e-9 * w * n) {
    const Line line = {(n * wy - wx * ratios) / determinant, (w * ratios - wx * wy) / determinant};
    if (line.base >= 0 && line.factor > 0) return line;
  }
  return {0, ratios / n};
}

}  // namespace

absl::StatusOr<StepTime> FitStepTimes(const Calibration& warm_up,
                                      const std::vector<TimedStep>& steps) {
  const scheduler::CostModel model(warm_up);
  if (!model.ready()) {
    return absl::InvalidArgumentError(
        "the log has no step times of a warm-up, so other settings cannot be simulated");
  }
  std::vector<Point> points;
  for (const TimedStep& step : steps) {
    const auto predicted = static_cast<double>(model.Predict(step.shape).count());
    const auto actual = static_cast<double>(step.time.count());
    if (predicted > 0 && actual > 0) points.push_back({predicted, actual});
  }
  const Line line = points.empty() ? Line{} : Fit(WithoutOutliers(points));
  std::vector<double> ratios = {1};
  if (!points.empty()) ratios.clear();
  for (const auto& [predicted, actual] : points) {
    ratios.push_back(actual / (line.base + line.factor * predicted));
  }
  return [model, line, ratios, random = Random(1)](const scheduler::StepShape& shape) mutable {
    const auto predicted = static_cast<double>(model.Predict(shape).count());
    const double ratio = ratios[random.Next() % ratios.size()];
    return Duration(std::llround((line.base + line.factor * predicted) * ratio));
  };
}

}  // namespace penstock::sim
