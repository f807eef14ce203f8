// The published closed form against its golden table (docs/scheduling.md, "Step times").
#include "scheduler/cost/machine_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

namespace penstock::scheduler {
namespace {

StepShape Decodes(std::uint64_t rows, std::uint64_t context) {
  StepShape step;
  for (std::uint64_t i = 0; i < rows; ++i) step.AddDecode(context);
  return step;
}

StepShape Prefill(std::uint64_t tokens) {
  StepShape step;
  step.AddChunk(0, tokens);
  return step;
}

StepShape Hybrid() {
  StepShape step = Decodes(31, 1024);
  step.AddChunk(3584, 512);
  return step;
}

std::array<StepShape, 7> Columns() {
  return {Decodes(1, 1024), Decodes(32, 1024), Decodes(128, 1024), Decodes(32, 8192), Prefill(512),
          Prefill(4096),    Hybrid()};
}

struct Golden {
  const char* name;
  std::array<double, 7> milliseconds;
};

constexpr Golden kGoldens[] = {
    {"a100-llama-3-8b-tp1", {11.75, 14.89, 26.18, 33.33, 34.11, 268.46, 44.63}},
    {"a100-llama-3-8b-tp2", {7.24, 8.90, 14.98, 18.12, 20.50, 154.77, 26.11}},
    {"a100-llama-3-70b-tp4", {29.15, 32.19, 45.33, 43.71, 88.80, 675.25, 103.20}},
    {"a100-llama-3-70b-tp8", {17.68, 19.55, 27.50, 25.31, 55.43, 411.82, 63.63}},
    {"h100-llama-3-8b-tp1", {7.09, 8.86, 14.53, 18.83, 13.27, 93.49, 17.42}},
    {"h100-llama-3-8b-tp2", {4.60, 5.56, 8.71, 10.54, 8.84, 57.65, 11.19}},
    {"h100-llama-3-70b-tp2", {29.39, 32.28, 41.47, 44.75, 59.52, 463.50, 69.94}},
    {"h100-llama-3-70b-tp4", {16.52, 18.30, 24.19, 24.53, 37.25, 273.43, 43.15}},
    {"h100-llama-3-70b-tp8", {10.59, 11.77, 16.02, 14.88, 26.41, 174.67, 30.06}},
    {"h200-llama-3-8b-tp1", {5.59, 6.94, 11.43, 14.06, 12.50, 92.14, 16.28}},
    {"h200-llama-3-8b-tp2", {3.94, 4.68, 7.20, 8.24, 8.26, 55.27, 10.41}},
    {"h200-llama-3-70b-tp2", {22.35, 24.64, 32.75, 33.53, 57.57, 445.93, 67.35}},
    {"h200-llama-3-70b-tp4", {13.10, 14.55, 19.78, 19.00, 35.48, 262.44, 41.10}},
    {"h200-llama-3-70b-tp8", {8.83, 9.81, 13.57, 12.03, 24.18, 163.63, 27.66}},
    {"h100-llama-3-8b-tp1-generic", {6.91, 8.67, 14.20, 18.64, 12.98, 96.01, 17.17}},
    {"h100-llama-3-70b-tp4-generic", {16.55, 18.33, 24.25, 24.56, 38.00, 279.97, 43.95}},
    {"a100-llama-3-8b-tp1-generic", {11.79, 14.79, 24.70, 33.22, 31.60, 259.75, 42.12}},
};

TEST(MachineModel, GoldenStepTimesWithinHalfAPercent) {
  for (const Golden& golden : kGoldens) {
    const auto model = MachineModel::Find(golden.name);
    ASSERT_TRUE(model.has_value()) << golden.name;
    const std::array<StepShape, 7> columns = Columns();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const double expected = golden.milliseconds[i];
      EXPECT_NEAR(model->Terms(columns[i]).Sum(), expected, 0.005 * expected)
          << golden.name << ", column " << i;
    }
  }
}

TEST(MachineModel, TermsOfTheWorkedExamples) {
  const StepTerms hybrid = MachineModel::Find("h100-llama-3-8b-tp1")->Terms(Hybrid());
  EXPECT_NEAR(hybrid.linear, 10.376, 0.001);
  EXPECT_NEAR(hybrid.prefill, 2.065, 0.001);
  EXPECT_NEAR(hybrid.decode, 1.950, 0.001);
  EXPECT_NEAR(hybrid.elementwise, 2.314, 0.001);
  EXPECT_EQ(hybrid.all_reduce, 0);
  EXPECT_NEAR(hybrid.head, 0.397, 0.001);
  EXPECT_NEAR(hybrid.sampling, 0.314, 0.001);

  const StepTerms parallel = MachineModel::Find("h100-llama-3-70b-tp4")->Terms(Decodes(32, 1024));
  EXPECT_NEAR(parallel.linear, 12.901, 0.001);
  EXPECT_NEAR(parallel.decode, 2.052, 0.001);
  EXPECT_NEAR(parallel.elementwise, 1.760, 0.001);
  EXPECT_NEAR(parallel.all_reduce, 1.070, 0.001);
  EXPECT_NEAR(parallel.head, 0.199, 0.001);
}

// The gain of chunking: 32 decodes with the last chunk of a prompt of 4,096 tokens.
TEST(MachineModel, LongestStepByChunk) {
  const auto model = *MachineModel::Find("h100-llama-3-8b-tp1-generic");
  const std::pair<std::uint64_t, double> rows[] = {
      {256, 11.9}, {512, 17.2}, {1024, 29.4}, {2048, 53.4}, {4096, 98.8}};
  for (const auto& [chunk, expected] : rows) {
    StepShape step = Decodes(31, 1024);
    step.AddChunk(4096 - chunk, chunk);
    EXPECT_NEAR(model.Terms(step).Sum(), expected, 0.01 * expected) << chunk;
  }
}

TEST(MachineModel, NamesAreFoundAndOthersAreNot) {
  for (const std::string& name : MachineModel::Names()) {
    const auto model = MachineModel::Find(name);
    ASSERT_TRUE(model.has_value()) << name;
    const StepTerms terms = model->Terms(Hybrid());
    EXPECT_TRUE(std::isfinite(terms.Sum()) && terms.linear > 0) << name;
  }
  EXPECT_FALSE(MachineModel::Find("h100-llama-3-8b-tp3").has_value());
  EXPECT_FALSE(MachineModel::Find("").has_value());
}

TEST(MachineModel, AnEmptyStepTakesNoTime) {
  EXPECT_EQ(MachineModel::Find("h100-llama-3-8b-tp1")->StepTime({}), Duration(0));
}

}  // namespace
}  // namespace penstock::scheduler
