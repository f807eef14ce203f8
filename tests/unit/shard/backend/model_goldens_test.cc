// Every model type and variant against HF transformers: the goldens of tests/data/goldens/models
// and the checkpoints that the build makes of them. Prints one line per variant and backend.
#include "tests/unit/shard/backend/model_goldens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/shard/backend/model_checkpoints.h"

namespace penstock::shard {
namespace {

float World2Difference(const RunnerOptions& options, const ModelGolden& golden) {
  std::mutex mutex;
  float largest = 0.0f;
  OnRanks(options, 2, [&](ModelRunner& runner) {
    const float whole = PrefillDifference(runner, golden, kWholePrompt);
    const float decode = DecodeDifference(runner, golden);
    const std::lock_guard lock(mutex);
    largest = Larger(largest, Larger(whole, decode));
  });
  return largest;
}

class ModelGoldenTest : public testing::TestWithParam<std::tuple<std::string, Runs>> {};

TEST_P(ModelGoldenTest, LogitsAndGreedyIdsAreThoseOfTransformers) {
  const auto& [name, backend] = GetParam();
  const ModelGolden golden = ReadModelGolden(name);
  const std::string why = WhyNotServed(golden);
  if (!why.empty()) GTEST_SKIP() << why;
  RunnerOptions options = OptionsOf(golden);
  options.backend = backend;

  auto runner = ModelRunner::Open(options);
  ASSERT_NE(runner, nullptr);
  std::vector<std::optional<float>> cells = {PrefillDifference(*runner, golden, kWholePrompt),
                                             PrefillDifference(*runner, golden, kShortChunk),
                                             DecodeDifference(*runner, golden), std::nullopt};
  if (golden.world2) cells[3] = World2Difference(options, golden);
  for (const std::optional<float>& cell : cells) {
    EXPECT_LE(cell.value_or(0.0f), golden.bound);
  }
  PrintDifferences(golden, testing::PrintToString(backend), cells);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGoldenTest,
                         testing::Combine(testing::ValuesIn(GoldenNames()),
                                          testing::Values(Runs::kReference, Runs::kCpu)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           const bool cpu = std::get<1>(info.param) == Runs::kCpu;
                           return name + (cpu ? "_cpu" : "_reference");
                         });

}  // namespace
}  // namespace penstock::shard
