// Qwen3.5 and Qwen3-Next: config.json, the division among ranks, and what each rank keeps.
#include <gmock/gmock.h>

#include <string>

#include "common/status.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/model_spec.h"
#include "shard/model/rank_share.h"

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kNext[] = R"({
  "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_size": 64,
  "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16,
  "vocab_size": 512, "max_position_embeddings": 1024, "linear_num_key_heads": 2,
  "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 12,
  "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
  "shared_expert_intermediate_size": 32)";

absl::StatusOr<ModelSpec> Read(const std::string& more) {
  return ReadModelSpec(kNext + more + "}", "");
}

std::string Error(const std::string& more) { return Message(Read(more).status()); }

TEST(QwenHybrid, EveryFourthLayerIsFullUnlessTheConfigSaysWhich) {
  const HasTensor none = [](std::string_view) { return false; };
  const auto spec = Read("");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const Program program = BuildProgram(*spec, *MakeRankShare(*spec, 0, 1), none).program;
  EXPECT_EQ(program.caches.size(), 1u);
  ASSERT_EQ(program.states.size(), 3u);
  EXPECT_EQ(program.states[0].channels, 2u * 2 * 8 + 4 * 12);
  EXPECT_EQ(program.states[0].inputs, 3u);
  EXPECT_EQ(program.StateBytes(), 3u * 4 * (80 * 3 + 4 * 8 * 12));
  const auto two = Read(R"(, "full_attention_interval": 2)");
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(BuildProgram(*two, *MakeRankShare(*two, 0, 1), none).program.states.size(), 2u);
}

TEST(QwenHybrid, RanksDivideValueHeadsAndShareKeyHeads) {
  const auto spec = Read("");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const auto second = MakeRankShare(*spec, 1, 2);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->first_delta_key, 1u);
  EXPECT_EQ(second->delta_keys, 1u);
  EXPECT_EQ(second->first_delta_value, 2u);
  EXPECT_EQ(second->delta_values, 2u);
  const auto third = MakeRankShare(*spec, 2, 4);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_EQ(third->first_delta_key, 1u);
  EXPECT_EQ(third->delta_keys, 1u);
  EXPECT_EQ(third->first_delta_value, 2u);
  EXPECT_EQ(third->delta_values, 1u);
  EXPECT_THAT(Message(MakeRankShare(*spec, 0, 8).status()),
              HasSubstr("a divisor of the model's 4 value heads of gated delta nets: 1, 2 or 4"));
}

TEST(QwenHybrid, NamesKeysThatItCannotServe) {
  EXPECT_THAT(Error(R"(, "layer_types": ["linear_attention", "mamba", "mamba", "mamba"])"),
              HasSubstr("`layer_types[1]` must be full_attention or linear_attention"));
  EXPECT_THAT(Error(R"(, "layer_types": ["full_attention"])"),
              HasSubstr("`layer_types` must be a list of 4 names"));
  EXPECT_THAT(Error(R"(, "full_attention_interval": 9)"),
              HasSubstr("`full_attention_interval` must be such that one layer at least has full "
                        "attention"));
  EXPECT_THAT(Error(R"(, "attn_output_gate": false)"),
              HasSubstr("`attn_output_gate` must be true"));
  EXPECT_THAT(Error(R"(, "linear_conv_kernel_dim": 17)"), HasSubstr("`linear_conv_kernel_dim`"));
}

TEST(QwenHybrid, AWrapperHasItsTextPartInside) {
  const std::string text =
      R"({"model_type": "qwen3_5_text", "hidden_size": 64, "intermediate_size": 96,
          "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
          "head_dim": 16, "vocab_size": 512, "max_position_embeddings": 1024, "bos_token_id": 3,
          "eos_token_id": 4, "tie_word_embeddings": true})";
  const auto spec = ReadModelSpec(
      R"({"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
          "text_config": )" +
          text + "}",
      "");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->model_type, "qwen3_5");
  EXPECT_EQ(spec->bos_token_id, 3);
  EXPECT_THAT(spec->eos_token_ids, ElementsAre(4));
  EXPECT_EQ(spec->tied_head, true);
  EXPECT_EQ(spec->rope.dim, 4u);
  EXPECT_EQ(spec->delta.value_heads, 32u);
}

}  // namespace
}  // namespace penstock::shard
