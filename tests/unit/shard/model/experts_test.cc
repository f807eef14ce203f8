// Mixtures of experts: the keys of config.json, and the tensors that each rank reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <variant>
#include <vector>

#include "common/status.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/model_spec.h"
#include "shard/model/rank_share.h"

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// `members` are set in config.json.
absl::StatusOr<ModelSpec> Read(const std::string& type, const std::string& members) {
  boost::json::object config = boost::json::parse(R"({
      "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 8,
      "num_key_value_heads": 2, "intermediate_size": 24, "moe_intermediate_size": 24,
      "vocab_size": 10, "max_position_embeddings": 64})")
                                   .as_object();
  config["model_type"] = type;
  const boost::json::object set = boost::json::parse("{" + members + "}").as_object();
  for (const auto& item : set) config[item.key()] = item.value();
  return ReadModelSpec(boost::json::serialize(config), "");
}

// The decoder of the last of `world` ranks. The checkpoint has tensors with these parts of names.
BuiltProgram Build(const std::string& type, const std::string& members, std::uint32_t world = 1,
                   const std::vector<std::string>& has = {}) {
  const auto spec = Read(type, members);
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return {};
  return BuildProgram(*spec, *MakeRankShare(*spec, world - 1, world),
                      [&has](std::string_view name) {
                        for (const std::string& part : has) {
                          if (name.find(part) != std::string_view::npos) return true;
                        }
                        return false;
                      });
}

const ExpertsOp& ExpertsOf(const BuiltProgram& built) {
  for (const Op& op : built.program.body) {
    if (const auto* experts = std::get_if<ExpertsOp>(&op)) return *experts;
  }
  ADD_FAILURE() << "no experts";
  static const ExpertsOp none;
  return none;
}

const WeightTarget& TargetOf(const BuiltProgram& built, WeightIndex index) {
  return built.weights.targets.at(static_cast<std::size_t>(index));
}

std::vector<std::string> TensorsOf(const WeightTarget& target) {
  std::vector<std::string> names;
  for (const WeightPart& part : target.parts) names.push_back(part.tensor);
  return names;
}

TEST(Experts, TheirNumberHasAnyOfItsNames) {
  for (const std::string key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    for (const std::string type : {"mixtral", "qwen2_moe", "qwen3_moe", "glm4_moe", "gpt_oss"}) {
      const BuiltProgram built = Build(type, "\"first_k_dense_replace\": 0, \"" + key + "\": 9");
      EXPECT_EQ(ExpertsOf(built).experts.size(), 9u) << type << " " << key;
    }
  }
}

TEST(Experts, AreReadOneByOneOrFromStacks) {
  const std::string members = R"("num_local_experts": 3)";
  const BuiltProgram single = Build("mixtral", members);
  const Expert& last = ExpertsOf(single).experts[2];
  EXPECT_THAT(TensorsOf(TargetOf(single, last.gate_up)),
              ElementsAre("model.layers.0.block_sparse_moe.experts.2.w1.weight",
                          "model.layers.0.block_sparse_moe.experts.2.w3.weight"));
  EXPECT_THAT(TensorsOf(TargetOf(single, last.down)),
              ElementsAre("model.layers.0.block_sparse_moe.experts.2.w2.weight"));

  const BuiltProgram fused =
      Build("mixtral", members, 2, {"model.norm", ".mlp.gate.weight", ".gate_up_proj"});
  const WeightTarget& gate_up = TargetOf(fused, ExpertsOf(fused).experts[2].gate_up);
  EXPECT_THAT(TensorsOf(gate_up), ElementsAre("model.layers.0.mlp.experts.gate_up_proj",
                                              "model.layers.0.mlp.experts.gate_up_proj"));
  EXPECT_EQ(gate_up.rows, 24u);
  EXPECT_EQ(gate_up.parts[0].rows.first, 12u);
  EXPECT_EQ(gate_up.parts[1].rows.first, 24u + 12u);
  EXPECT_EQ(gate_up.parts[1].stack, 3u);
  EXPECT_EQ(gate_up.parts[1].matrix, 2u);
}

TEST(Experts, RowsOfGptOssAlternate) {
  const BuiltProgram built =
      Build("gpt_oss", R"("num_local_experts": 3, "experts_per_token": 2)", 2);
  const Expert& expert = ExpertsOf(built).experts[1];
  for (const WeightIndex index : {expert.gate_up, expert.gate_up_bias}) {
    const WeightTarget& target = TargetOf(built, index);
    EXPECT_EQ(target.rows, 24u);
    EXPECT_EQ(target.parts[0].rows.first, 24u);
    EXPECT_EQ(target.parts[1].rows.first, 25u);
    EXPECT_EQ(target.parts[1].row_step, 2u);
    EXPECT_EQ(target.parts[1].target_row, 12u);
  }
  EXPECT_EQ(expert.down_bias, kNoWeight);  // of rank 0 alone
  EXPECT_NE(ExpertsOf(Build("gpt_oss", "")).experts[1].down_bias, kNoWeight);
}

// 24 columns and 8 heads: with 8 ranks each has 3 columns. 20 columns do not divide, but 8 experts.
TEST(Experts, RanksHaveWholeOnesWhereColumnsDoNotDivide) {
  const std::string members = R"("num_local_experts": 8)";
  EXPECT_EQ(ExpertsOf(Build("mixtral", members, 8)).width, 3u);
  const ExpertsOp experts =
      ExpertsOf(Build("mixtral", members + R"(, "intermediate_size": 20)", 8));
  EXPECT_EQ(experts.width, 20u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(experts.experts[i].gate_up != kNoWeight, i == 7) << i;
  }
  const auto spec = Read("mixtral", members + R"(, "intermediate_size": 20)");
  EXPECT_FALSE(MakeRankShare(*spec, 0, 3).ok());
}

TEST(Experts, ErrorsNameTheKey) {
  struct Case {
    const char* type;
    const char* members;
    const char* message;
  };
  const Case cases[] = {
      {"mixtral", R"("num_local_experts": 0)", "`num_local_experts` must be"},
      {"qwen3_moe", R"("num_experts": 4, "num_experts_per_tok": 5)",
       "`num_experts_per_tok` must be"},
      {"mixtral", R"("num_local_experts": 1)",
       "`num_experts_per_tok` must be at most the number of experts, 1. Given: nothing"},
      {"qwen2_moe", R"("mlp_only_layers": 3)", "`mlp_only_layers` must be a list of numbers"},
      {"glm4_moe", R"("n_group": 3)", "`n_group` must be a divisor of the 128 experts"},
      {"glm4_moe", R"("n_group": 32)", "`topk_group` must be enough groups of 4 for 8 experts"},
      {"gpt_oss", R"("swiglu_limit": 0)", "`swiglu_limit` must be"},
      {"gpt_oss", R"("layer_types": ["chunked_attention"])", "`layer_types[0]` must be"},
  };
  for (const Case& c : cases) {
    const auto spec = Read(c.type, c.members);
    EXPECT_THAT(Message(spec.status()), HasSubstr(c.message)) << c.members;
  }
}

TEST(Experts, GptOssHasYarnUnlessItsParametersAreGiven) {
  const RopeSpec yarn = Read("gpt_oss", "")->rope;
  EXPECT_EQ(yarn.type, RopeType::kYarn);
  EXPECT_EQ(yarn.theta, 150000.0);
  EXPECT_EQ(yarn.factor, 32.0);
  EXPECT_EQ(yarn.original_max_position, 4096.0);
  EXPECT_FALSE(yarn.truncate);
  EXPECT_NEAR(yarn.attention_factor, 1.3465735902799727, 1e-12);
  EXPECT_EQ(Read("gpt_oss", R"("rope_parameters": {"rope_type": "default"})")->rope.type,
            RopeType::kDefault);
}

}  // namespace
}  // namespace penstock::shard
