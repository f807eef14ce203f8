#include "scheduler/cost/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "scheduler/cost/machine_model.h"

namespace penstock::scheduler {
namespace {

using TimeOf = std::function<Duration(const StepShape&)>;

struct Point {
  std::uint32_t prompt = 0;
  std::uint32_t rows = 0;
  std::uint32_t context = 0;
};

StepShape ShapeOf(const Point& point) {
  StepShape step;
  if (point.prompt > 0) step.AddChunk(point.rows > 0 ? 0 : point.context, point.prompt);
  if (point.rows > 0) step.AddDecode(point.context, point.rows);
  return step;
}

// The sweep of a warm-up: 32 points.
std::vector<Point> Sweep() {
  std::vector<Point> points;
  for (std::uint32_t t : {1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096})
    points.push_back({t, 0, 0});
  for (std::uint32_t rows : {1, 8, 32, 128}) {
    for (std::uint32_t context : {128, 1024, 4096, 16384}) points.push_back({0, rows, context});
  }
  for (std::uint32_t chunk : {256, 1024}) {
    for (std::uint32_t cached : {0, 4096, 16384}) points.push_back({chunk, 0, cached});
  }
  return points;
}

// Each time is multiplied by a random factor with a spread of `sigma`.
Calibration Measure(const std::vector<Point>& points, const TimeOf& time, double sigma,
                    std::mt19937& random) {
  std::normal_distribution<double> noise;
  Calibration calibration;
  for (const Point& point : points) {
    const double off = std::exp(sigma * noise(random));
    const auto ns = static_cast<double>(time(ShapeOf(point)).count()) * off;
    calibration.samples.push_back(
        {point.prompt, point.rows, point.context, Duration(static_cast<Duration::rep>(ns))});
  }
  return calibration;
}

// Typical steps: some decodes, often with a prefill chunk.
StepShape RandomStep(std::mt19937& random) {
  StepShape step;
  const std::uint32_t rows = random() % 4 == 0 ? 0 : 1 + random() % 128;
  for (std::uint32_t i = 0; i < rows; ++i) step.AddDecode(16 + random() % 6000);
  if (rows == 0 || random() % 2 == 0) step.AddChunk(random() % 8192, 1 + random() % 2048);
  return step;
}

double MedianError(const CostModel& model, const TimeOf& time, std::mt19937& random) {
  std::vector<double> errors;
  for (int i = 0; i < 1000; ++i) {
    const StepShape step = RandomStep(random);
    const auto actual = static_cast<double>(time(step).count());
    errors.push_back(std::abs(static_cast<double>(model.Predict(step).count()) / actual - 1));
  }
  std::nth_element(errors.begin(), errors.begin() + 500, errors.end());
  return errors[500];
}

TEST(CostModel, PredictsKnownMachinesFromANoisyTable) {
  for (const std::string& name : MachineModel::Names()) {
    const auto machine = *MachineModel::Find(name);
    const TimeOf time = [&machine](const StepShape& step) { return machine.StepTime(step); };
    for (const std::uint32_t seed : {1u, 2u, 3u}) {
      std::mt19937 random(seed);
      const CostModel model(Measure(Sweep(), time, 0.05, random));
      ASSERT_TRUE(model.ready());
      EXPECT_LE(MedianError(model, time, random), 0.10) << name << ", seed " << seed;
    }
  }
}

// A slow processor with a short table, where the cost of each token dominates.
TEST(CostModel, PredictsAProcessorFromAFewPoints) {
  const TimeOf time = [](const StepShape& step) {
    const double us = 400.0 + 90.0 * static_cast<double>(step.Tokens()) +
                      0.02 * static_cast<double>(step.prompt_pairs2) +
                      0.05 * static_cast<double>(step.decode_context);
    return Duration(static_cast<Duration::rep>(us * 1000));
  };
  const std::vector<Point> points = {{1, 0, 0},   {16, 0, 0},   {64, 0, 0},
                                     {256, 0, 0}, {0, 1, 64},   {0, 1, 900},
                                     {0, 16, 64}, {0, 16, 900}, {256, 0, 700}};
  std::mt19937 random(5);
  const CostModel model(Measure(points, time, 0.05, random));
  EXPECT_LE(MedianError(model, time, random), 0.10);
}

// Two points are enough for a constant and a slope.
TEST(CostModel, FitsAShortTableExactly) {
  const CostModel model({{{256, 0, 0, std::chrono::microseconds(5000 + 256 * 10)},
                          {0, 1, 1, std::chrono::microseconds(5010)},
                          {0, 32, 1, std::chrono::microseconds(5320)}}});
  StepShape decodes;
  for (int i = 0; i < 16; ++i) decodes.AddDecode(1);
  EXPECT_NEAR(static_cast<double>(model.Predict(decodes).count()), 5.16e6, 0.03 * 5.16e6);
}

TEST(CostModel, NotReadyWithoutTimes) {
  EXPECT_FALSE(CostModel(Calibration{}).ready());
  EXPECT_FALSE(CostModel({{{16, 0, 0, Duration(0)}, {0, 1, 1, Duration(0)}}}).ready());
  EXPECT_EQ(CostModel(Calibration{}).Predict(ShapeOf({16, 0, 0})), Duration(0));
}

CostModel ExactH100() {
  const auto machine = *MachineModel::Find("h100-llama-3-8b-tp1");
  std::mt19937 random(1);
  return CostModel(Measure(
      Sweep(), [&](const StepShape& step) { return machine.StepTime(step); }, 0, random));
}

TEST(CostModel, AStepThatDoesMoreIsNeverPredictedToTakeLess) {
  const CostModel model = ExactH100();
  Duration before(0);
  for (std::uint32_t tokens = 1; tokens < 6000; ++tokens) {
    const Duration now = model.Predict(ShapeOf({tokens, 0, 0}));
    EXPECT_GE(now, before) << tokens;
    before = now;
  }
}

TEST(CostModel, LargestChunkIsTheLastThatFits) {
  const CostModel model = ExactH100();
  const StepShape decodes = ShapeOf({0, 32, 1024});
  for (const int ms : {5, 9, 12, 20, 30, 200}) {
    const Duration target = std::chrono::milliseconds(ms);
    const std::uint32_t count = model.LargestChunk(decodes, 512, 4096, target);
    const auto time = [&](std::uint32_t tokens) {
      StepShape step = decodes;
      step.AddChunk(512, tokens);
      return model.Predict(step);
    };
    EXPECT_TRUE(count == 0 || time(count) <= target) << ms;
    EXPECT_TRUE(count == 4096 || time(count + 1) > target) << ms;
  }
  EXPECT_EQ(model.LargestChunk(decodes, 512, 0, Duration(1)), 0u);
  EXPECT_EQ(model.LargestChunk(decodes, 512, 4096, std::chrono::milliseconds(5)), 0u);
}

TEST(CostModel, FollowsAMachineThatSlowsDown) {
  CostModel model = ExactH100();
  const StepShape step = ShapeOf({0, 32, 1024});
  const Duration usual = model.Predict(step);
  model.Observe(usual, 100 * usual);
  EXPECT_LE(model.Predict(step), usual * 104 / 100) << "one outlier";
  for (int i = 0; i < 200; ++i) model.Observe(model.Predict(step), 3 * usual / 2);
  const double ratio =
      static_cast<double>(model.Predict(step).count()) / static_cast<double>(usual.count());
  EXPECT_NEAR(ratio, 1.5, 0.03);
}

// Every compiler gives the same bits: a hash of predictions for many shapes.
TEST(CostModel, IsReproducible) {
  const CostModel model = ExactH100();
  std::uint64_t hash = 14695981039346656037u;
  for (std::uint32_t i = 1; i < 2000; ++i) {
    StepShape step;
    step.AddChunk(i * 7 % 4096, i);
    step.AddDecode(i * 13 % 9000, i % 129);
    hash = (hash ^ static_cast<std::uint64_t>(model.Predict(step).count())) * 1099511628211u;
  }
  EXPECT_EQ(hash, 11240217159969209639u);
}

}  // namespace
}  // namespace penstock::scheduler
