#include "tests/unit/shard/backend/hf_goldens.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <fstream>
#include <sstream>

#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

// Demo model: the bound that the project promises.
constexpr float kTolerance = 1e-4f;

HfGoldens::Case ReadCase(const boost::json::value& item) {
  HfGoldens::Case result;
  result.name = boost::json::value_to<std::string>(item.at("name"));
  result.prompt = boost::json::value_to<std::vector<TokenId>>(item.at("ids"));
  result.greedy = boost::json::value_to<std::vector<TokenId>>(item.at("greedy").at("ids"));
  for (const auto& row : item.at("logits").as_array()) {
    result.logits.emplace_back(row.at("position").to_number<std::size_t>(),
                               boost::json::value_to<std::vector<float>>(row.at("values")));
  }
  return result;
}

}  // namespace

HfGoldens ReadHfGoldens(const std::string& name) {
  std::ifstream file(testing_support::SourcePath("tests/data/goldens/" + name + ".json"));
  std::ostringstream text;
  text << file.rdbuf();
  const boost::json::value root = boost::json::parse(text.str());
  HfGoldens goldens;
  goldens.folder =
      testing_support::SourcePath(boost::json::value_to<std::string>(root.at("model")));
  for (const auto& item : root.at("cases").as_array()) goldens.cases.push_back(ReadCase(item));
  return goldens;
}

void ExpectGoldenLogits(ModelRunner& runner, const HfGoldens& goldens, std::size_t chunk) {
  for (const HfGoldens::Case& golden : goldens.cases) {
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

void ExpectGoldenIds(ModelRunner& runner, const HfGoldens& goldens) {
  for (const HfGoldens::Case& golden : goldens.cases) {
    runner.Reset(1);
    EXPECT_EQ(runner.Greedy(1, golden.prompt, golden.greedy.size()), golden.greedy) << golden.name;
  }
}

}  // namespace penstock::shard
