// Opening a model folder for a rank: its share, its program, its weight plan, and errors.
#include "shard/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "common/status.h"
#include "shard/model/decoder_builder.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/make-model/make_model.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

class MadeModel : public testing::TestWithParam<const char*> {
 protected:
  void Make(const std::string& type) {
    make_model::ModelOptions config;
    config.output = folder_.path();
    config.type = type;
    config.overwrite = true;
    const auto result = make_model::MakeModel(config, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    parameters_ = result->parameters;
  }

  absl::StatusOr<Model> Open(std::uint32_t rank = 0, std::uint32_t world = 1,
                             std::optional<DType> dtype = std::nullopt) {
    return Model::Open({folder_.path(), dtype, Device(), rank, world});
  }

  std::string OpenError(std::uint32_t rank = 0, std::uint32_t world = 1) {
    auto model = Open(rank, world);
    return model.ok() ? "" : Message(model.status());
  }

  void ChangeConfig(const std::string& key, const boost::json::value& value) {
    std::ifstream in(folder_ / "config.json");
    std::stringstream text;
    text << in.rdbuf();
    auto config = boost::json::parse(text.str()).as_object();
    config[key] = value;
    folder_.Write("config.json", boost::json::serialize(config));
  }

  TempFolder folder_;
  std::uint64_t parameters_ = 0;
};

TEST_P(MadeModel, HasItsSizesBeforeWeightsAreRead) {
  Make(GetParam());
  auto model = Open();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->spec.model_type, GetParam());
  EXPECT_EQ(model->dtype, DType::kBFloat16);
  EXPECT_EQ(model->parameters, parameters_);
  EXPECT_GE(model->WeightBytes(), parameters_ * 2);
  auto loaded = model->Load(nullptr);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->memory.bytes(), model->WeightBytes());
}

// Each stored element is loaded by one rank, or by every rank if the tensor is replicated.
TEST_P(MadeModel, RanksLoadEveryElementOnce) {
  Make(GetParam());
  for (std::uint32_t world : {1u, 2u, 4u, 8u}) {
    std::map<std::string, std::uint64_t> elements;
    std::map<std::string, std::uint64_t> stored;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      auto model = Open(rank, world);
      ASSERT_TRUE(model.ok()) << model.status();
      for (const WeightTarget& target : model->weight_plan.targets) {
        for (const WeightPart& part : target.parts) {
          elements[part.tensor] += part.rows.count * part.columns.count;
          stored[part.tensor] = 1;
          for (std::uint64_t size : part.stored_shape) stored[part.tensor] *= size;
        }
      }
    }
    for (const auto& [tensor, count] : elements) {
      const bool kv =
          tensor.find("k_proj") != std::string::npos || tensor.find("v_proj") != std::string::npos;
      const bool replicated = tensor.find("norm") != std::string::npos;
      const std::uint64_t copies = replicated ? world : kv && world > 4 ? world / 4 : 1;
      EXPECT_EQ(count, stored[tensor] * copies) << tensor << ", world " << world;
    }
  }
}

TEST_P(MadeModel, RanksAgreeOnTheFingerprint) {
  Make(GetParam());
  const std::string first = Open(0, 2)->fingerprint;
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(Open(1, 2)->fingerprint, first);
  EXPECT_NE(Open(0, 2, DType::kFloat32)->fingerprint, first);
  ChangeConfig(std::string(GetParam()) == "gpt_neox" ? "rotary_emb_base" : "rope_theta", 20000.0);
  EXPECT_NE(Open(0, 2)->fingerprint, first);
}

INSTANTIATE_TEST_SUITE_P(Types, MadeModel,
                         testing::Values("llama", "qwen2", "qwen3", "mistral", "gpt_neox"),
                         [](const auto& info) { return std::string(info.param); });

class BrokenModel : public MadeModel {};

TEST_F(BrokenModel, NamesTheMissingTensorAndItsShape) {
  Make("llama");
  ChangeConfig("num_hidden_layers", 3);
  EXPECT_EQ(OpenError(),
            "tensor model.layers.2.input_layernorm.weight is missing; config.json asks for [64]");
}

TEST_F(BrokenModel, NamesATensorOfTheWrongShape) {
  Make("llama");
  ChangeConfig("intermediate_size", 136);
  EXPECT_EQ(OpenError(),
            "model.safetensors: tensor model.layers.0.mlp.gate_proj.weight has shape [128, 64]; "
            "config.json asks for [136, 64]");
}

TEST_F(BrokenModel, NamesATensorThatTheModelDoesNotHave) {
  Make("qwen3");
  ChangeConfig("model_type", "llama");
  EXPECT_EQ(OpenError(),
            "model.safetensors: tensor model.layers.0.self_attn.k_norm.weight [16] has no place in "
            "this model type");
}

TEST_F(BrokenModel, SaysWhyAWorldSizeDoesNotFit) {
  Make("llama");  // 8 heads, 4 K/V heads, FFN 128
  EXPECT_EQ(OpenError(0, 3),
            "--num-shard 3: must be a divisor of the model's 8 attention heads: 1, 2, 4 or 8");
  EXPECT_TRUE(absl::IsUnimplemented(Open(0, 3).status()));  // the exit code of options
  EXPECT_EQ(OpenError(2, 2), "`rank` must be below the world size 2. Given: 2");
  ModelSpec spec = Open()->spec;
  spec.heads = spec.kv_heads = 12;
  spec.intermediate = 128;
  EXPECT_THAT(
      Message(MakeRankShare(spec, 0, 3).status()),
      HasSubstr("--num-shard 3: must be a divisor of the model's 128 FFN columns: 1, 2 or 4"));
  spec.intermediate = 240;
  spec.expert_intermediate = 128;
  EXPECT_THAT(Message(MakeRankShare(spec, 0, 3).status()),
              HasSubstr("128 columns of an expert: 1, 2 or 4"));
  spec.expert_intermediate = 0;
  spec.kv_heads = 4;
  EXPECT_THAT(Message(MakeRankShare(spec, 0, 6).status()),
              HasSubstr("a multiple of the model's 4 K/V heads: 1, 2, 4 or 12"));
}

TEST_F(BrokenModel, SaysWhichFileIsMissing) {
  EXPECT_THAT(OpenError(), HasSubstr("config.json: cannot be read"));
  const auto absent = Model::Open({"/no/such/model", std::nullopt, Device(), 0, 1});
  EXPECT_EQ(Message(absent.status()), "/no/such/model: is not a folder of a model");
  Make("llama");
  std::filesystem::remove(folder_ / "model.safetensors");
  EXPECT_THAT(OpenError(), HasSubstr("has neither model.safetensors nor"));
}

TEST_F(BrokenModel, ATruncatedFileIsRefusedBeforeLoading) {
  Make("llama");
  std::filesystem::resize_file(folder_ / "model.safetensors", 100000);
  EXPECT_THAT(OpenError(), testing::StartsWith("model.safetensors: "));
}

TEST(RankShare, VocabularyIsPaddedToEqualShares) {
  ModelSpec spec;
  spec.heads = spec.kv_heads = 4;
  spec.intermediate = 8;
  spec.vocabulary = 9;
  const auto last = MakeRankShare(spec, 3, 4);
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->vocabulary_padded, 3u);
  EXPECT_EQ(last->first_vocabulary, 9u);
  EXPECT_EQ(last->vocabulary, 0u);
  EXPECT_EQ(MakeRankShare(spec, 2, 4)->vocabulary, 3u);
}

TEST(DTypeChoice, AutoIsTheTypeOfTheCheckpointButForFloat16OnACpu) {
  TempFolder folder;
  make_model::ModelOptions config;
  config.output = folder.path();
  config.dtype = DType::kFloat16;
  ASSERT_TRUE(make_model::MakeModel(config, nullptr).ok());
  ModelOptions options;
  options.folder = folder.path();
  EXPECT_EQ(Model::Open(options)->dtype, DType::kFloat32);
  options.device.kind = Device::Kind::kCuda;
  EXPECT_EQ(Model::Open(options)->dtype, DType::kFloat16);
  options.dtype = DType::kBFloat16;
  EXPECT_EQ(Model::Open(options)->dtype, DType::kBFloat16);
}

TEST(Program, IsAFlatListWithOneAllReducePerBranch) {
  const auto spec = ReadModelSpec(R"({"model_type": "llama", "hidden_size": 8,
      "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 10,
      "max_position_embeddings": 64, "sliding_window": 5,
      "layer_types": ["full_attention", "sliding_attention", "full_attention"]})",
                                  "");
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (std::uint32_t world : {1u, 2u}) {
    const Program program =
        BuildProgram(*spec, *MakeRankShare(*spec, 0, world), [](auto) { return false; }).program;
    std::map<std::string_view, int> count;
    std::vector<std::uint32_t> windows;
    for (const Op& op : program.body) {
      ++count[NameOf(op)];
      if (const auto* attention = std::get_if<AttentionOp>(&op)) {
        windows.push_back(attention->window);
      }
    }
    EXPECT_EQ(count[LinearOp::kName], 4 * 3);
    EXPECT_EQ(count[NormOp::kName], 2 * 3 + 1);
    EXPECT_EQ(count[AllReduceOp::kName], world == 1 ? 0 : 2 * 3 + 1);  // + the embedding
    EXPECT_THAT(windows, testing::ElementsAre(0, 5, 0));
    EXPECT_EQ(program.head.size(), world);
  }
}

TEST(Program, TheGateOfAnMlpHasTheActivationOfTheConfig) {
  for (const char* type : {"granite", "llama", "mistral", "phi3", "qwen2", "qwen3", "smollm3"}) {
    const std::string config =
        R"({"num_hidden_layers": 1, "hidden_act": "gelu_pytorch_tanh", "model_type": ")";
    const auto spec = ReadModelSpec(config + type + "\"}", "");
    ASSERT_TRUE(spec.ok()) << type << ": " << spec.status();
    const Program program =
        BuildProgram(*spec, *MakeRankShare(*spec, 0, 1), [](auto) { return false; }).program;
    std::vector<Activation> activations;
    for (const Op& op : program.body) {
      const auto* gate = std::get_if<GatedActivationOp>(&op);
      if (gate != nullptr) activations.push_back(gate->activation);
    }
    EXPECT_THAT(activations, testing::ElementsAre(Activation::kGeluTanh)) << type;
  }
}

// Full layers have wider heads, and the last layers read the caches of earlier ones.
TEST(DecoderBuilder, GivesEachLayerItsHeadsAndItsCache) {
  const auto spec = ReadModelSpec(R"({"model_type": "gemma4_text", "hidden_size": 8,
      "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4,
      "global_head_dim": 8, "intermediate_size": 8, "vocab_size": 10,
      "max_position_embeddings": 64, "sliding_window": 5, "hidden_size_per_layer_input": 0,
      "num_kv_shared_layers": 2, "use_double_wide_mlp": true,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                      "full_attention"]})",
                                  "");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const Program program =
      BuildProgram(*spec, *MakeRankShare(*spec, 0, 2), [](auto) { return false; }).program;
  EXPECT_EQ(program.caches, (std::vector<CacheShape>{{1, 4, 4, false, 1}, {1, 8, 8}}));
  std::vector<std::uint32_t> read, written, dims, mlps;
  for (const Op& op : program.body) {
    if (const auto* attention = std::get_if<AttentionOp>(&op)) {
      read.push_back(attention->cache);
      dims.push_back(attention->heads.key_dim);
    }
    const auto* write = std::get_if<RopeKvWriteOp>(&op);
    if (write != nullptr && write->writes) written.push_back(write->cache);
    if (const auto* mlp = std::get_if<GatedActivationOp>(&op)) mlps.push_back(mlp->width);
  }
  EXPECT_THAT(read, testing::ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(written, testing::ElementsAre(0, 1));
  EXPECT_THAT(dims, testing::ElementsAre(4, 8, 4, 8));
  EXPECT_THAT(mlps, testing::ElementsAre(4, 4, 8, 8));
  EXPECT_EQ(program.Width(Buffer::kQkv), 3u * 8);
  EXPECT_EQ(program.Width(Buffer::kMlpUp), 2u * 8);
}

// The decoder of a small llama whose checkpoint has these tensors.
BuiltProgram BuildLlama(const std::string& members, const std::set<std::string, std::less<>>& has) {
  const auto spec = ReadModelSpec(R"({"model_type": "llama", "hidden_size": 8,
      "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 10,
      "max_position_embeddings": 64)" +
                                      members + "}",
                                  "");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return BuildProgram(*spec, *MakeRankShare(*spec, 0, 1),
                      [&has](std::string_view name) { return has.contains(name); });
}

// Names of the tensors that the plan needs.
std::set<std::string> TensorsOf(const BuiltProgram& built) {
  std::set<std::string> names;
  for (const WeightTarget& target : built.weights.targets) {
    for (const WeightPart& part : target.parts) names.insert(part.tensor);
  }
  return names;
}

// Each rank has whole heads. Where ranks add their outputs, only rank 0 has the bias.
TEST(DecoderBuilder, SplitsGptNeoxByHead) {
  const auto spec = ReadModelSpec(R"({"model_type": "gpt_neox", "hidden_size": 16,
      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 10,
      "max_position_embeddings": 64})",
                                  "");
  ASSERT_TRUE(spec.ok()) << spec.status();
  for (std::uint32_t rank : {0u, 1u}) {
    const BuiltProgram built =
        BuildProgram(*spec, *MakeRankShare(*spec, rank, 2), [](auto) { return true; });
    std::map<std::string, const WeightTarget*> targets;
    for (const WeightTarget& target : built.weights.targets) targets[target.name] = &target;
    const WeightTarget& qkv = *targets.at("layers.0.qkv");
    ASSERT_EQ(qkv.parts.size(), 3u);
    for (std::uint64_t i = 0; i < 3; ++i) {  // query, key and value of the rank's head
      EXPECT_EQ(qkv.parts[i].rows.first, rank * 24 + i * 8);
      EXPECT_EQ(qkv.parts[i].rows.count, 8u);
      EXPECT_EQ(qkv.parts[i].target_row, i * 8);
    }
    EXPECT_EQ(targets.count("gpt_neox.layers.0.attention.dense.bias"), rank == 0 ? 1u : 0u);
    EXPECT_EQ(targets.count("gpt_neox.layers.0.mlp.dense_4h_to_h.bias"), rank == 0 ? 1u : 0u);
  }
}

TEST(DecoderBuilder, AParallelResidualTakesOneAllReduceALayer) {
  for (const bool parallel : {false, true}) {
    const auto spec = ReadModelSpec(R"({"model_type": "gpt_neox", "hidden_size": 16,
        "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 10,
        "max_position_embeddings": 64, "use_parallel_residual": )" +
                                        std::string(parallel ? "true" : "false") + "}",
                                    "");
    ASSERT_TRUE(spec.ok()) << spec.status();
    const Program program =
        BuildProgram(*spec, *MakeRankShare(*spec, 0, 2), [](auto) { return true; }).program;
    const auto reduces = std::count_if(program.body.begin(), program.body.end(), [](const Op& op) {
      return std::holds_alternative<AllReduceOp>(op);
    });
    EXPECT_EQ(reduces, 1 + (parallel ? 3 : 6));
  }
}

TEST(DecoderBuilder, ALinearLayerHasABiasIfAnyLayerHasOne) {
  const auto tensors = TensorsOf(BuildLlama(
      "", {"model.norm.weight", "lm_head.weight", "model.layers.0.self_attn.q_proj.weight",
           "model.layers.0.self_attn.q_proj.bias", "model.layers.0.mlp.down_proj.weight",
           "model.layers.1.mlp.down_proj.bias"}));
  EXPECT_TRUE(tensors.contains("model.layers.1.self_attn.v_proj.bias"));
  EXPECT_FALSE(tensors.contains("model.layers.1.self_attn.o_proj.bias"));
  // The loader then names the bias that layer 0 has not.
  EXPECT_TRUE(tensors.contains("model.layers.0.mlp.down_proj.bias"));
}

TEST(DecoderBuilder, NamesHaveNoPrefixIfTheCheckpointHasNone) {
  const auto tensors =
      TensorsOf(BuildLlama("", {"norm.weight", "embed_tokens.weight", "lm_head.weight"}));
  EXPECT_TRUE(tensors.contains("embed_tokens.weight"));
  EXPECT_TRUE(tensors.contains("layers.1.mlp.up_proj.weight"));
  EXPECT_TRUE(tensors.contains("lm_head.weight"));
}

TEST(DecoderBuilder, TheHeadIsTiedIfTheCheckpointHasNone) {
  const std::string embedding = "model.embed_tokens.weight";
  const std::string head = "lm_head.weight";
  const std::string tied = R"(, "tie_word_embeddings": true)";
  // Which of the two the plan needs.
  const auto used = [&](const std::string& members, const std::set<std::string, std::less<>>& has) {
    const auto tensors = TensorsOf(BuildLlama(members, has));
    return std::pair(tensors.contains(embedding), tensors.contains(head));
  };
  EXPECT_EQ(used(tied, {embedding}), std::pair(true, false));
  EXPECT_EQ(used(tied, {embedding, head}), std::pair(true, true));  // as in transformers
  EXPECT_EQ(used("", {embedding}), std::pair(true, false));
  EXPECT_EQ(used(R"(, "tie_word_embeddings": false)", {embedding}), std::pair(true, true));
  // Tied, but stored under the head's name.
  EXPECT_EQ(used(tied, {head}), std::pair(false, true));
}

}  // namespace
}  // namespace penstock::shard
