// The backends against HF transformers (tests/data/goldens, made by `make oracle`): the
// demo model and one tiny model of each family, in float32, in chunks, on one and several ranks.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

// Demo model: the bound that the project promises.
constexpr float kTolerance = 1e-4f;

struct Case {
  std::string name;
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
  std::vector<std::pair<std::size_t, std::vector<float>>> logits;  // position, row
};

struct Golden {
  std::string folder;
  std::vector<Case> cases;
};

Case ReadCase(const boost::json::value& item) {
  Case result;
  result.name = boost::json::value_to<std::string>(item.at("name"));
  result.prompt = boost::json::value_to<std::vector<TokenId>>(item.at("ids"));
  result.greedy = boost::json::value_to<std::vector<TokenId>>(item.at("greedy").at("ids"));
  for (const auto& row : item.at("logits").as_array()) {
    result.logits.emplace_back(row.at("position").to_number<std::size_t>(),
                               boost::json::value_to<std::vector<float>>(row.at("values")));
  }
  return result;
}

Golden ReadGolden(const std::string& name) {
  std::ifstream file(testing_support::SourcePath("tests/data/goldens/" + name + ".json"));
  std::ostringstream text;
  text << file.rdbuf();
  const boost::json::value root = boost::json::parse(text.str());
  Golden golden;
  golden.folder = testing_support::SourcePath(boost::json::value_to<std::string>(root.at("model")));
  for (const auto& item : root.at("cases").as_array()) golden.cases.push_back(ReadCase(item));
  return golden;
}

class HfGolden : public testing::TestWithParam<std::tuple<std::string, Runs>> {
 protected:
  void SetUp() override {
    const auto& [name, backend] = GetParam();
    golden_ = ReadGolden(name);
    ASSERT_GE(golden_.cases.size(), 3u);
    options_.folder = golden_.folder;
    options_.dtype = DType::kFloat32;
    options_.backend = backend;
    options_.max_sequence_length = name == "demo" ? 512 : 256;
  }

  // Logits after each golden position, whatever the size of the pieces the prompt comes in.
  void ExpectLogits(ModelRunner& runner, std::size_t chunk) const {
    for (const Case& golden : golden_.cases) {
      for (const auto& [position, expected] : golden.logits) {
        runner.Reset(0);
        const auto end = golden.prompt.begin() + static_cast<std::ptrdiff_t>(position) + 1;
        const auto row = runner.Prefill(0, {golden.prompt.begin(), end}, chunk);
        ASSERT_EQ(row.size(), expected.size());
        EXPECT_LE(MaxDifference(row, expected), kTolerance)
            << golden.name << " after position " << position << ", chunks of " << chunk;
      }
    }
  }

  void ExpectGreedy(ModelRunner& runner) const {
    for (const Case& golden : golden_.cases) {
      runner.Reset(1);
      EXPECT_EQ(runner.Greedy(1, golden.prompt, golden.greedy.size()), golden.greedy)
          << golden.name;
    }
  }

  Golden golden_;
  RunnerOptions options_;
};

TEST_P(HfGolden, LogitsDifferByAtMostOneTenThousandth) {
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  for (std::size_t chunk : {128u, 17u}) ExpectLogits(*runner, chunk);
}

TEST_P(HfGolden, GreedyIdsAreTheSame) {
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  ExpectGreedy(*runner);
}

TEST_P(HfGolden, RanksGiveTheSameLogitsAndIds) {
  for (std::uint32_t world : {2u, 4u}) {
    OnRanks(options_, world, [this](ModelRunner& runner) {
      ExpectLogits(runner, 128);
      ExpectGreedy(runner);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HfGolden,
                         testing::Combine(testing::Values("demo", "llama", "mistral", "qwen2",
                                                          "qwen3"),
                                          testing::Values(Runs::kReference, Runs::kCpu)),
                         [](const auto& info) {
                           const bool cpu = std::get<1>(info.param) == Runs::kCpu;
                           return std::get<0>(info.param) + (cpu ? "_cpu" : "_reference");
                         });

}  // namespace
}  // namespace penstock::shard
