// Ranks, scales and target modules of adapter_config.json, as PEFT reads them.
#include "shard/adapters/adapter_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/status.h"

namespace penstock::shard {
namespace {

AdapterConfig Parsed(const std::string& keys) {
  const auto config = ParseAdapterConfig(R"({"peft_type": "LORA", )" + keys + "}");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : AdapterConfig();
}

TEST(AdapterConfig, ScalesByAlphaAndRank) {
  const auto plain = Parsed(R"("r": 4, "lora_alpha": 6, "target_modules": ["q_proj"])");
  EXPECT_EQ(plain.RankOf("model.layers.0.self_attn.q_proj"), 4u);
  EXPECT_FLOAT_EQ(plain.ScaleOf("model.layers.0.self_attn.q_proj"), 1.5f);
  const auto stable =
      Parsed(R"("r": 4, "lora_alpha": 6, "use_rslora": true, "target_modules": "all-linear")");
  EXPECT_FLOAT_EQ(stable.ScaleOf("model.layers.0.self_attn.q_proj"), 3.0f);
  const auto unset = Parsed(R"("target_modules": ["q_proj"])");
  EXPECT_EQ(unset.RankOf("q_proj"), 8u);
  EXPECT_FLOAT_EQ(unset.ScaleOf("q_proj"), 1.0f);
}

TEST(AdapterConfig, TakesTheFirstPatternThatMatchesTheEndOfAName) {
  const auto config = Parsed(R"("r": 8, "lora_alpha": 16, "target_modules": "all-linear",
      "rank_pattern": {"layers.1.mlp.down_proj": 2, "down_proj": 4, "^model.layers.3.*": 32},
      "alpha_pattern": {"o_proj": 4})");
  EXPECT_EQ(config.RankOf("model.layers.1.mlp.down_proj"), 2u);
  EXPECT_EQ(config.RankOf("model.layers.11.mlp.down_proj"), 4u);
  EXPECT_EQ(config.RankOf("model.layers.2.mlp.down_proj"), 4u);
  EXPECT_EQ(config.RankOf("model.layers.2.mlp.updown_proj"), 8u) << "the end begins after a dot";
  EXPECT_EQ(config.RankOf("model.layers.3.self_attn.o_proj"), 32u);
  EXPECT_FLOAT_EQ(config.ScaleOf("model.layers.3.self_attn.o_proj"), 4.0f / 32);
}

TEST(AdapterConfig, MatchesTargetsByNameEndOrExpression) {
  const auto list = Parsed(R"("target_modules": ["q_proj", "mlp.up_proj"])");
  EXPECT_TRUE(list.targets.Matches("model.layers.0.self_attn.q_proj"));
  EXPECT_TRUE(list.targets.Matches("q_proj"));
  EXPECT_FALSE(list.targets.Matches("model.layers.0.self_attn.eq_proj"));
  EXPECT_TRUE(list.targets.Matches("model.layers.0.mlp.up_proj"));
  const auto expression = Parsed(R"("target_modules": ".*layers\\.(0|2)\\..*(q|v)_proj")");
  EXPECT_TRUE(expression.targets.Matches("model.layers.2.self_attn.v_proj"));
  EXPECT_FALSE(expression.targets.Matches("model.layers.1.self_attn.v_proj"));
  EXPECT_FALSE(expression.targets.Matches("model.layers.0.self_attn.v_proj.rest"));
}

TEST(AdapterConfig, TakesKeysThatSayNothing) {
  Parsed(R"("target_modules": ["q_proj"], "use_dora": false, "a_key_of_later": null,
      "another": [], "modules_to_save": null, "loftq_config": {}, "lora_dropout": 0.1,
      "init_lora_weights": "gaussian", "fan_in_fan_out": true, "bias": "none")");
}

}  // namespace
}  // namespace penstock::shard
