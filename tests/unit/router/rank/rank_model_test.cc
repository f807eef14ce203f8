#include "router/rank/rank_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/json_text.h"
#include "common/status.h"
#include "tests/unit/support/paths.h"

namespace penstock::router {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

json::object Goldens() {
  std::ifstream file(testing_support::SourcePath("tests/unit/router/rank/goldens.json"));
  std::ostringstream text;
  text << file.rdbuf();
  return json::parse(text.str()).as_object();
}

std::string Text(const json::value& value) { return JsonText(value); }

// Two words and one tree: short if the first word is there.
json::object Small() {
  return json::parse(R"({"format": "penstock rank model", "version": 1, "base": 131072,
    "words": [[5], [5, 6]],
    "trees": [{"feature": [5, 6], "threshold": [0, 1], "left": [-1, -2], "right": [1, -3],
               "leaf": [65536, 0, -65536]}]})")
      .as_object();
}

std::string ErrorOf(const json::object& file) {
  const auto model = RankModel::Parse(Text(file));
  return model.ok() ? "no error" : Message(model.status());
}

std::uint32_t Predict(const RankModel& model, const std::vector<TokenId>& prompt) {
  return model.Predict({.prompt = prompt});
}

TEST(RankModel, ComputesTheFeaturesScoresAndLengthsThatPythonComputes) {
  const json::object goldens = Goldens();
  const auto model = RankModel::Parse(Text(goldens.at("model")));
  ASSERT_TRUE(model.ok()) << model.status();
  std::size_t cases = 0;
  for (const json::value& each : goldens.at("cases").as_array()) {
    const json::object& golden = each.as_object();
    const auto prompt = json::value_to<std::vector<TokenId>>(golden.at("prompt"));
    const RankInput input{prompt, golden.at("max_new_tokens").to_number<std::uint32_t>(),
                          golden.at("length_given").as_bool(),
                          static_cast<RequestClass>(golden.at("request_class").to_number<int>())};
    const std::vector<std::int32_t> features = model->features().Of(input);
    EXPECT_EQ(features, json::value_to<std::vector<std::int32_t>>(golden.at("features")));
    EXPECT_EQ(model->Score(features), golden.at("score").as_int64());
    EXPECT_EQ(model->Predict(input), golden.at("tokens").as_int64());
    ++cases;
  }
  EXPECT_GE(cases, 10u);
}

TEST(RankModel, CountsWordsThatOverlapInTheLast512Tokens) {
  const auto model = RankModel::Parse(Text(Small()));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Predict(*model, {1, 2}), 8u) << "base 4 tokens, and the first leaf doubles them";
  EXPECT_EQ(Predict(*model, {5, 6}), 4u);
  EXPECT_EQ(Predict(*model, {5, 6, 5, 6}), 2u);
  std::vector<TokenId> prompt(513, 1);
  prompt[0] = 5;
  EXPECT_EQ(Predict(*model, prompt), 8u) << "the word is before the last 512 tokens";
  prompt[1] = 5;
  EXPECT_EQ(Predict(*model, prompt), 4u);
}

TEST(RankModel, RefusesABadFileWithFieldValueAndLimit) {
  json::object file = Small();
  file["format"] = "lightgbm";
  EXPECT_EQ(ErrorOf(file), "`format` must be \"penstock rank model\". Given: \"lightgbm\"");
  file = Small();
  file["version"] = 2;
  EXPECT_EQ(ErrorOf(file), "`version` must be 1. Given: 2");
  file = Small();
  file["words"].as_array()[1] = {1, 2, 3, 4};
  EXPECT_EQ(ErrorOf(file), "`words[1]` must be an array of 1 to 3 token ids. Given: [1,2,3,4]");
  file = Small();
  file["words"].as_array()[1] = {5};
  EXPECT_EQ(ErrorOf(file), "`words[1]` must be unlike the words before. Given: [5]");
  file = Small();
  file.erase("trees");
  EXPECT_EQ(ErrorOf(file), "`trees` must be an array of at most 4096 entries. Given: nothing");
  EXPECT_THAT(Message(RankModel::Parse("{").status()), HasSubstr("one JSON object"));
  EXPECT_THAT(Message(RankModel::Load("/nowhere/rank.json").status()),
              HasSubstr("cannot open `/nowhere/rank.json`"));
}

TEST(RankModel, RefusesATreeThatLeavesItsArraysOrNeverEnds) {
  const auto with = [](const char* member, json::array values) {
    json::object file = Small();
    file["trees"].as_array()[0].as_object()[member] = std::move(values);
    return ErrorOf(file);
  };
  EXPECT_EQ(with("feature", {5, 7}),
            "`trees[0].feature[1]` must be an integer from 0 to 6. Given: 7");
  EXPECT_EQ(with("left", {-4, -2}),
            "`trees[0].left[0]` must be an integer from -3 to 1. Given: -4");
  EXPECT_EQ(with("right", {0, -3}),
            "`trees[0].right[0]` must be a leaf or a node after 0. Given: 0");
  EXPECT_EQ(with("threshold", {0}),
            "`trees[0].threshold` must be an array of 2 entries, as `feature`. Given: 1 entries");
  EXPECT_EQ(with("leaf", {}),
            "`trees[0].leaf` must be an array of at least 1 entry. Given: 0 entries");
  EXPECT_EQ(
      with("leaf", {1, 2, 1e9}),
      "`trees[0].leaf[2]` must be an integer from -16777216 to 16777216. Given: 1000000000.0");
}

}  // namespace
}  // namespace penstock::router
