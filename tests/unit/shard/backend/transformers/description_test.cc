#include "shard/backend/transformers/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <string>
#include <utility>

#include "common/status.h"
#include "shard/model/features.h"

namespace penstock::shard::transformers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

boost::json::object Description() {
  return boost::json::parse(R"({"model_type": "own", "vocabulary": 260, "max_position": 256,
      "eos_token_ids": [257, 256], "bos_token_id": -1, "dtype": "bfloat16", "stored_dtype": "",
      "layers": 3, "caches": [[2, 8, 4], [2, 8, 4]], "parameters": 35232})")
      .as_object();
}

TEST(DescriptionTest, GivesAModelWithoutWeights) {
  const auto model = ModelOf(Description());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->spec.model_type, "own");
  EXPECT_EQ(model->spec.max_position, 256u);
  EXPECT_THAT(model->spec.eos_token_ids, ElementsAre(257, 256));
  EXPECT_EQ(model->dtype, DType::kBFloat16);
  EXPECT_EQ(model->spec.stored_dtype, std::nullopt);
  EXPECT_EQ(model->parameters, 35232u);
  EXPECT_EQ(model->program.vocabulary, 260u);
  EXPECT_THAT(model->program.caches, ElementsAre(CacheShape{2, 8, 4}, CacheShape{2, 8, 4}));
}

TEST(DescriptionTest, TheModelSharesNoBlocks) {
  const auto model = ModelOf(Description());
  ASSERT_TRUE(model.ok()) << model.status();
  for (const Feature feature : {Feature::kPrefixCache, Feature::kSpeculation,
                                Feature::kPaddedLayout, Feature::kContrastiveSearch}) {
    EXPECT_NE(WhyNot(feature, model->program), "");
  }
  EXPECT_EQ(WhyNot(Feature::kChunkedPrefill, model->program), "");
  EXPECT_EQ(WhyNot(Feature::kPreemption, model->program), "");
}

TEST(DescriptionTest, AFieldThatCannotBeUsedIsNamed) {
  const std::pair<const char*, boost::json::value> cases[] = {
      {"model_type", 3},      {"vocabulary", 0},         {"max_position", "256"},
      {"dtype", "int3"},      {"eos_token_ids", {260}},  {"caches", boost::json::array()},
      {"layers", -1},         {"caches", {{2, 8}}},      {"parameters", nullptr},
      {"bos_token_id", -2},   {"stored_dtype", nullptr}, {"eos_token_ids", nullptr},
      {"caches", {{2, 0, 4}}}};
  for (const auto& [field, value] : cases) {
    boost::json::object description = Description();
    description[field] = value;
    const auto model = ModelOf(description);
    EXPECT_TRUE(absl::IsInternal(model.status())) << field;
    EXPECT_THAT(Message(model.status()), HasSubstr("`" + std::string(field) + "`"));
  }
}

}  // namespace
}  // namespace penstock::shard::transformers
