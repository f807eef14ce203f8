// The backends against HF transformers (tests/data/goldens, made by `make oracle`): the
// demo model and one tiny model of each family, in float32, in chunks, on one and several ranks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/shard/backend/hf_goldens.h"
#include "tests/unit/shard/backend/model_runner.h"

namespace penstock::shard {
namespace {

class HfGolden : public testing::TestWithParam<std::tuple<std::string, Runs>> {
 protected:
  void SetUp() override {
    const auto& [name, backend] = GetParam();
    golden_ = ReadHfGoldens(name);
    ASSERT_GE(golden_.cases.size(), 3u);
    options_.folder = golden_.folder;
    options_.dtype = DType::kFloat32;
    options_.backend = backend;
    options_.max_sequence_length = name == "demo" ? 512 : 256;
  }

  HfGoldens golden_;
  RunnerOptions options_;
};

TEST_P(HfGolden, LogitsDifferByAtMostOneTenThousandth) {
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  for (std::size_t chunk : {128u, 17u}) ExpectGoldenLogits(*runner, golden_, chunk);
}

TEST_P(HfGolden, GreedyIdsAreTheSame) {
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  ExpectGoldenIds(*runner, golden_);
}

TEST_P(HfGolden, RanksGiveTheSameLogitsAndIds) {
  for (std::uint32_t world : {2u, 4u}) {
    OnRanks(options_, world, [this](ModelRunner& runner) {
      ExpectGoldenLogits(runner, golden_, 128);
      ExpectGoldenIds(runner, golden_);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HfGolden,
                         testing::Combine(testing::Values("demo", "llama", "mistral", "qwen2",
                                                          "qwen3", "gpt_neox",
                                                          "gpt_neox_sequential"),
                                          testing::Values(Runs::kReference, Runs::kCpu)),
                         [](const auto& info) {
                           const bool cpu = std::get<1>(info.param) == Runs::kCpu;
                           return std::get<0>(info.param) + (cpu ? "_cpu" : "_reference");
                         });

}  // namespace
}  // namespace penstock::shard
