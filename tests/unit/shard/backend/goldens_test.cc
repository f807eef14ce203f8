// Greedy text of a trained model against published reference outputs.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <fstream>
#include <sstream>

#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

struct Golden {
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
  std::vector<std::pair<TokenId, float>> first_logits;
};

std::vector<TokenId> Ids(const boost::json::value& list) {
  std::vector<TokenId> ids;
  for (const auto& id : list.as_array()) ids.push_back(static_cast<TokenId>(id.as_int64()));
  return ids;
}

std::vector<Golden> ReadGoldens(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::vector<Golden> goldens;
  const auto root = boost::json::parse(text.str());
  for (const auto& item : root.at("cases").as_array()) {
    Golden golden{Ids(item.at("prompt_ids")), Ids(item.at("greedy_ids")), {}};
    for (const auto& pair : item.at("first_logits_top10").as_array()) {
      golden.first_logits.emplace_back(static_cast<TokenId>(pair.at(0).as_int64()),
                                       pair.at(1).to_number<float>());
    }
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

class Stories : public testing::TestWithParam<Runs> {
 protected:
  void SetUp() override {
    options_.folder = testing_support::SharedData("models/stories260K-hf");
    if (options_.folder.empty()) GTEST_SKIP() << "stories260K-hf is not among the test inputs";
    options_.dtype = DType::kFloat32;
    options_.backend = GetParam();
    goldens_ = ReadGoldens(options_.folder + "/golden_greedy.json");
    ASSERT_EQ(goldens_.size(), 4u);
  }
  RunnerOptions options_;
  std::vector<Golden> goldens_;
};

TEST_P(Stories, GreedyIdsAndFirstLogitsAreTheGoldens) {
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  for (const Golden& golden : goldens_) {
    runner->Reset(0);
    const std::vector<float> first = runner->Prefill(0, golden.prompt, 128);
    for (const auto& [token, logit] : golden.first_logits) EXPECT_NEAR(first[token], logit, 1e-4);
    EXPECT_EQ(runner->Greedy(1, golden.prompt, golden.greedy.size()), golden.greedy);
  }
}

TEST_P(Stories, KvCachesOfOtherTypes) {
  if (GetParam() != Runs::kCpu) GTEST_SKIP() << "only the cpu backend has them";
  for (const auto& [type, bound] :
       {std::pair{KvType::kFloat32, 1e-4}, {KvType::kBFloat16, 0.1}, {KvType::kInt8, 0.3}}) {
    SCOPED_TRACE(KvTypeName(type));
    options_.kv_type = type;
    auto runner = ModelRunner::Open(options_);
    ASSERT_NE(runner, nullptr);
    for (const Golden& golden : goldens_) {
      runner->Reset(0);
      const std::vector<float> first = runner->Prefill(0, golden.prompt, 128);
      for (const auto& [token, logit] : golden.first_logits) {
        EXPECT_NEAR(first[token], logit, bound);
      }
      if (type != KvType::kFloat32) continue;
      EXPECT_EQ(runner->Greedy(1, golden.prompt, golden.greedy.size()), golden.greedy);
    }
  }
}

TEST_P(Stories, ChunksOfAnySizeGiveTheSameIds) {
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  const Golden& golden = goldens_[3];
  for (std::size_t chunk : {1u, 7u, 16u, 33u}) {
    EXPECT_EQ(runner->Greedy(0, golden.prompt, golden.greedy.size(), chunk), golden.greedy);
  }
}

TEST_P(Stories, RanksGiveTheSameIds) {
  for (std::uint32_t world : {2u, 4u}) {
    OnRanks(options_, world, [this](ModelRunner& runner) {
      for (const Golden& golden : goldens_) {
        const std::vector<TokenId> expected(golden.greedy.begin(), golden.greedy.begin() + 60);
        EXPECT_EQ(runner.Greedy(0, golden.prompt, expected.size()), expected);
      }
    });
  }
}

TEST_P(Stories, ShardedBf16CopyFollowsTheGoldensForFiftyTokens) {
  options_.folder = testing_support::SharedData("models/stories260K-hf-bf16-sharded");
  if (options_.folder.empty()) GTEST_SKIP() << "the BF16 copy is not among the test inputs";
  const Golden& golden = goldens_[1];
  const std::vector<TokenId> expected(golden.greedy.begin(), golden.greedy.begin() + 50);
  for (std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::kFloat32)}) {
    options_.dtype = dtype;
    auto runner = ModelRunner::Open(options_);
    ASSERT_NE(runner, nullptr);
    EXPECT_EQ(runner->model().dtype, dtype.value_or(DType::kBFloat16));
    EXPECT_EQ(runner->Greedy(0, golden.prompt, 50), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Stories, testing::Values(Runs::kReference, Runs::kCpu),
                         BackendName);

}  // namespace
}  // namespace penstock::shard
