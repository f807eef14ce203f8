// The program of a model with latent attention: what it caches, and what each rank computes.
#include "shard/model/latent_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "shard/cache/paged/paged_layout.h"

namespace penstock::shard {
namespace {

constexpr char kDeepSeekV3[] = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_act": "silu",
  "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 16,
  "num_key_value_heads": 16, "vocab_size": 512, "max_position_embeddings": 4096,
  "q_lora_rank": 96, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
  "v_head_dim": 128, "first_k_dense_replace": 1, "moe_intermediate_size": 64,
  "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 4, "topk_group": 2,
  "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                   "original_max_position_embeddings": 4096}})";

// The program of rank 0.
Program ProgramOf(std::uint32_t world) {
  const auto spec = ReadModelSpec(kDeepSeekV3, "");
  EXPECT_TRUE(spec.ok()) << spec.status();
  const auto part = MakeRankShare(*spec, 0, world);
  EXPECT_TRUE(part.ok()) << part.status();
  return BuildProgram(*spec, *part, [](std::string_view) { return false; }).program;
}

template <class Kind>
std::vector<Kind> All(const Program& program) {
  std::vector<Kind> all;
  for (const Op& op : program.body) {
    if (const auto* found = std::get_if<Kind>(&op)) all.push_back(*found);
  }
  return all;
}

TEST(LatentAttention, CachesTheLatentAndTheRopeKeyOnEveryRank) {
  for (const std::uint32_t world : {1u, 2u, 8u}) {
    const Program program = ProgramOf(world);
    const CacheShape shape{1, 512 + 64, 512, true};
    EXPECT_EQ(program.caches, (std::vector<CacheShape>{shape, shape})) << world << " ranks";
    const PagedLayout layout{program.caches, 16, DType::kBFloat16};
    EXPECT_EQ(layout.BytesPerToken(), 2u * (512 + 64) * 2) << world << " ranks";
  }
}

TEST(LatentAttention, DividesTheHeads) {
  const Program program = ProgramOf(2);
  for (const AttentionOp& op : All<AttentionOp>(program)) {
    EXPECT_EQ(op.heads, (HeadShape{8, 1, 512 + 64, 512}));
  }
  const std::vector<HeadLinearOp> products = All<HeadLinearOp>(program);
  ASSERT_EQ(products.size(), 4u);  // of two layers: with the keys, then with the values
  EXPECT_EQ(products[0].in_dim, 128u);
  EXPECT_EQ(products[0].out_dim, 512u);
  EXPECT_EQ(products[0].rest, 64u);
  EXPECT_EQ(products[1].in_dim, 512u);
  EXPECT_EQ(products[1].out_dim, 128u);
  for (const HeadLinearOp& op : products) EXPECT_EQ(op.matrices.size(), 8u);
}

TEST(LatentAttention, YarnScalesTheProductsOfQueriesAndKeys) {
  const double once = 0.1 * std::log(40.0) + 1.0;
  for (const AttentionOp& op : All<AttentionOp>(ProgramOf(1))) {
    EXPECT_NEAR(op.scale, once * once / std::sqrt(128.0 + 64.0), 1e-6);
  }
}

}  // namespace
}  // namespace penstock::shard
