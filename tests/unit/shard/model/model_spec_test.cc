// Reading config.json: the forms of each family, and the errors.
#include "shard/model/model_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "common/status.h"

namespace penstock::shard {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kLlama[] = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
  "intermediate_size": 172, "num_hidden_layers": 3, "num_attention_heads": 8,
  "num_key_value_heads": 4, "vocab_size": 512, "max_position_embeddings": 1024,
  "rms_norm_eps": 1e-05, "rope_theta": 50000.0, "hidden_act": "silu", "bos_token_id": 1,
  "eos_token_id": 2, "torch_dtype": "bfloat16", "tie_word_embeddings": false})";

// kLlama with the members of `changes` set. "<absent>" removes a key.
std::string Config(const std::string& changes) {
  boost::json::object config = boost::json::parse(kLlama).as_object();
  const boost::json::object members = boost::json::parse(changes).as_object();
  for (const auto& item : members) {
    if (item.value() == "<absent>") {
      config.erase(item.key());
    } else {
      config[item.key()] = item.value();
    }
  }
  return boost::json::serialize(config);
}

absl::StatusOr<ModelSpec> Read(const std::string& changes, const std::string& generation = "") {
  return ReadModelSpec(Config(changes), generation);
}

ModelSpec Good(const std::string& changes, const std::string& generation = "") {
  auto spec = Read(changes, generation);
  EXPECT_TRUE(spec.ok()) << changes << ": " << spec.status();
  return spec.ok() ? *spec : ModelSpec();
}

std::string Error(const std::string& changes, const std::string& generation = "") {
  auto spec = Read(changes, generation);
  return spec.ok() ? "" : Message(spec.status());
}

TEST(ModelSpec, ReadsLlama) {
  const ModelSpec spec = Good("{}");
  EXPECT_EQ(spec.model_type, "llama");
  EXPECT_EQ(spec.head_dim, 8u);
  EXPECT_EQ(spec.kv_heads, 4u);
  EXPECT_EQ(spec.max_position, 1024u);
  EXPECT_EQ(spec.rope.theta, 50000.0);
  EXPECT_EQ(spec.rope.type, RopeType::kDefault);
  EXPECT_FLOAT_EQ(spec.norm_eps, 1e-5f);
  EXPECT_EQ(spec.stored_dtype, DType::kBFloat16);
  EXPECT_THAT(spec.windows, ElementsAre(0, 0, 0));
  EXPECT_THAT(spec.eos_token_ids, ElementsAre(2));
  EXPECT_EQ(spec.bos_token_id, 1);
  EXPECT_EQ(spec.rope.dim, 8u);
}

TEST(ModelSpec, KeyNamesOfTransformers5GiveTheSame) {
  const ModelSpec spec = Good(R"({"rope_theta": null, "torch_dtype": null, "dtype": "float16",
      "rope_parameters": {"rope_type": "default", "rope_theta": 123456.0}})");
  EXPECT_EQ(spec.rope.theta, 123456.0);
  EXPECT_EQ(spec.stored_dtype, DType::kFloat16);
}

TEST(ModelSpec, HeadDimIsExplicitOrDerivedOrTheClassDefault) {
  EXPECT_EQ(Good(R"({"head_dim": 32})").head_dim, 32u);
  EXPECT_EQ(Good(R"({"head_dim": null})").head_dim, 8u);
  EXPECT_EQ(Good(R"({"model_type": "qwen3"})").head_dim, 128u);
  EXPECT_EQ(Good(R"({"model_type": "qwen3", "head_dim": 16})").head_dim, 16u);
  EXPECT_EQ(Good(R"({"hidden_size": 63, "head_dim": 8})").head_dim, 8u);
}

TEST(ModelSpec, KeyValueHeadsDefaultToTheClassOrTheHeads) {
  EXPECT_EQ(Good(R"({"num_key_value_heads": "<absent>"})").kv_heads, 8u);
  EXPECT_EQ(Good(R"({"model_type": "mistral", "num_attention_heads": 16,
                     "num_key_value_heads": "<absent>"})")
                .kv_heads,
            8u);
}

TEST(ModelSpec, WindowsFollowTheFamily) {
  const auto windows = [](const std::string& changes) { return Good(changes).windows; };
  EXPECT_THAT(windows(R"({"model_type": "mistral", "sliding_window": 100})"), Each(100));
  EXPECT_THAT(windows(R"({"model_type": "mistral", "sliding_window": null})"), Each(0));
  EXPECT_THAT(windows(R"({"model_type": "mistral"})"), Each(4096));
  EXPECT_THAT(windows(R"({"sliding_window": null})"), Each(0));
  // Qwen: use_sliding_window must be set, and layers before max_window_layers have no window.
  EXPECT_THAT(windows(R"({"model_type": "qwen2", "sliding_window": 100})"), Each(0));
  EXPECT_THAT(windows(R"({"model_type": "qwen2", "sliding_window": 100,
                          "use_sliding_window": true, "max_window_layers": 2})"),
              ElementsAre(0, 0, 100));
  EXPECT_THAT(windows(R"({"model_type": "qwen3", "sliding_window": 100,
                          "use_sliding_window": true,
                          "layer_types": ["sliding_attention", "full_attention",
                                          "sliding_attention"]})"),
              ElementsAre(100, 0, 100));
}

TEST(ModelSpec, GptNeoxRotatesAPartOfEachHead) {
  const auto rope = [](const std::string& members) {
    return Good(R"({"model_type": "gpt_neox", "hidden_act": "gelu", "hidden_size": 128)" + members +
                "}")
        .rope;
  };
  EXPECT_EQ(rope("").dim, 4u);  // a quarter of 16
  EXPECT_EQ(rope("").theta, 10000.0);
  EXPECT_EQ(rope(R"(, "rotary_pct": 0.5)").dim, 8u);
  EXPECT_EQ(rope(R"(, "rotary_pct": 1.0, "rotary_emb_base": 500)").dim, 16u);
  EXPECT_EQ(rope(R"(, "rotary_emb_base": 500)").theta, 500.0);
  EXPECT_EQ(rope(R"(, "rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 7})").dim,
            8u);
  EXPECT_EQ(rope(R"(, "rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 7})").theta,
            7.0);
  EXPECT_THAT(Error(R"({"model_type": "gpt_neox", "hidden_act": "gelu", "rotary_pct": 0.4})"),
              HasSubstr("`rotary_pct` must be an even number of the 8 dimensions of a head"));
  EXPECT_THAT(Error(R"({"model_type": "gpt_neox", "hidden_act": "sinh"})"),
              HasSubstr("`hidden_act` must be one of silu, swish, gelu, gelu_new"));
}

TEST(ModelSpec, EndTokensAreOneOrManyAndTheGenerationConfigReplacesThem) {
  EXPECT_THAT(Good(R"({"eos_token_id": [1, 2]})").eos_token_ids, ElementsAre(1, 2));
  EXPECT_TRUE(Good(R"({"eos_token_id": null})").eos_token_ids.empty());
  EXPECT_THAT(Good("{}", R"({"eos_token_id": [7, 8]})").eos_token_ids, ElementsAre(7, 8));
  EXPECT_THAT(Good("{}", R"({"do_sample": true})").eos_token_ids, ElementsAre(2));
  EXPECT_EQ(Good(R"({"bos_token_id": null})").bos_token_id, -1);
}

TEST(ModelSpec, TheHeadIsTiedIfTheConfigSaysSo) {
  EXPECT_EQ(Good("{}").tied_head, false);
  EXPECT_EQ(Good(R"({"tie_word_embeddings": true})").tied_head, true);
  EXPECT_EQ(Good(R"({"tie_word_embeddings": null})").tied_head, std::nullopt);
}

TEST(ModelSpec, RopeScalingExtendsTheContextWhereTheTypeDoes) {
  EXPECT_EQ(Good(R"({"rope_scaling": {"type": "linear", "factor": 4.0}})").max_position, 4096u);
  EXPECT_EQ(Good(R"({"rope_scaling": {"type": "dynamic", "factor": 4.0}})").max_position, 4096u);
  EXPECT_EQ(Good(R"({"rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1, 1],
                     "long_factor": [2, 2, 2, 2], "original_max_position_embeddings": 256}})")
                .max_position,
            1024u);
  EXPECT_EQ(Good(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
                     "original_max_position_embeddings": 512}})")
                .max_position,
            2048u);
  EXPECT_EQ(Good(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1,
                     "high_freq_factor": 4, "original_max_position_embeddings": 256}})")
                .max_position,
            1024u);
}

// As in Hunyuan models. transformers 5.23 computes the same base.
TEST(ModelSpec, DynamicRopeWithAlphaHasALargerBaseForEveryLength) {
  const ModelSpec spec = Good(R"({"head_dim": 64, "rope_theta": 10000,
                                  "rope_scaling": {"type": "dynamic", "alpha": 1000.0}})");
  EXPECT_EQ(spec.rope.type, RopeType::kDefault);
  EXPECT_NEAR(spec.rope.theta, 12496091.4129, 1e-3);
  EXPECT_EQ(spec.max_position, 1024u);
}

TEST(ModelSpec, KimiK2IsADeepSeekV3) {
  constexpr char kBody[] = R"(", "qk_rope_head_dim": 32, "n_group": 1, "topk_group": 1})";
  const auto read = [&kBody](const std::string& type) {
    return ReadModelSpec(R"({"model_type": ")" + type + kBody, "");
  };
  const auto kimi = read("kimi_k2"), deepseek = read("deepseek_v3");
  ASSERT_TRUE(kimi.ok() && deepseek.ok()) << kimi.status() << deepseek.status();
  EXPECT_EQ(kimi->head_dim, deepseek->head_dim);
  EXPECT_EQ(kimi->experts, 256u);
}

TEST(ModelSpec, NamesAnUnsupportedKey) {
  struct Case {
    const char* changes;
    const char* message;
  };
  const Case cases[] = {
      {R"({"model_type": "lama"})", ", gemma, gemma2, gemma3, "},
      {R"({"model_type": "lama"})", "; the nearest is llama. Given: \"lama\""},
      {R"({"model_type": "foo"})",
       "xglm, youtu (--engine transformers runs others). Given: \"foo\""},
      {R"({"model_type": null})", "Given: nothing"},
      {R"({"model_type": 3})", "`model_type` must be a string. Given: 3"},
      {R"({"model_type": "mistral3"})", "`text_config` must be an object"},
      {R"({"model_type": "mistral3", "text_config": {"model_type": "lama"}})",
       "text_config: `model_type` must be one of "},
      {R"({"quantization_config": {"bits": 4}})",
       "quantization_config: `quant_method` must be one of "},
      {R"({"quantization_config": {"bits": 4}})", "Given: nothing"},
      {R"({"quantization_config": {"quant_method": "quip"}})", "fp8, "},
      {R"({"quantization_config": {"quant_method": "quip"}})", "Given: \"quip\""},
      {R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": 4}})",
       "quantization_config: `weight_block_size` must be a list of numbers"},
      {R"({"quantization_config": {"quant_method": "fp8", "rotation": "hadamard"}})",
       "quantization_config: `rotation` must be absent: Penstock does not know what it changes"},
      {R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}})",
       "`weight_block_size` must be two numbers: rows and columns"},
      {R"({"architectures": ["LlamaForTokenClassification"]})", "`architectures` must be"},
      {R"({"hidden_act": "sinh"})", "`hidden_act` must be one of silu, swish, gelu, gelu_new"},
      {R"({"model_type": "mixtral", "hidden_act": "gelu"})",
       "`hidden_act` must be silu. Given: \"gelu\""},
      {R"({"partial_rotary_factor": 0.5})", "`partial_rotary_factor` must be 1"},
      {R"({"rope_scaling": {"type": "longrope", "factor": 4}})",
       "config.json: rope_scaling: `short_factor` must be a list of numbers"},
      {R"({"rope_scaling": {"type": "ntk", "factor": 4}})",
       "`type` must be one of default, linear, dynamic, llama3, yarn, longrope"},
      {R"({"head_dim": 2, "rope_scaling": {"type": "dynamic", "factor": 2.0}})",
       "`type` must be another type where 2 dimensions of a head are rotated"},
      {R"({"rope_parameters": {"full_attention": {}}})", "RoPE per layer type is not supported"},
      {R"({"torch_dtype": "int8"})", "`torch_dtype` must be one of float32, bfloat16, float16"},
      {R"({"layer_types": ["linear_attention", "full_attention", "full_attention"]})",
       "`layer_types[0]` must be full_attention or sliding_attention"},
  };
  for (const Case& test : cases) EXPECT_THAT(Error(test.changes), HasSubstr(test.message));
}

TEST(ModelSpec, NamesKeyValueAndLimitOfABadNumber) {
  struct Case {
    const char* changes;
    const char* message;
  };
  const Case cases[] = {
      {R"({"hidden_size": 0})", "`hidden_size` must be an integer from 1 to 1048576. Given: 0"},
      {R"({"hidden_size": 64.5})", "Given: 64.5"},
      {R"({"hidden_size": "64"})", "Given: \"64\""},
      {R"({"num_hidden_layers": -1})", "`num_hidden_layers` must be"},
      {R"({"num_hidden_layers": 1000000000})", "`num_hidden_layers` must be"},
      {R"({"num_attention_heads": 7})", "`num_key_value_heads` must be a divisor of"},
      {R"({"num_attention_heads": 12})",
       "`num_attention_heads` must be a divisor of `hidden_size`"},
      {R"({"num_key_value_heads": 3})", "a divisor of `num_attention_heads` 8. Given: 3"},
      {R"({"head_dim": 7})", "`head_dim` must be even"},
      {R"({"num_attention_heads": 64})", "`head_dim` must be"},
      {R"({"vocab_size": 99999999999})", "`vocab_size` must be an integer from 1 to"},
      {R"({"intermediate_size": null})", "Given: nothing"},
      {R"({"max_position_embeddings": 0})", "`max_position_embeddings` must be"},
      {R"({"rms_norm_eps": -1})", "`rms_norm_eps` must be a number from"},
      {R"({"rope_theta": 0})", "`rope_theta` must be a number from"},
      {R"({"rope_scaling": {"type": "linear", "factor": 1e9}})", "`factor` must be a number from"},
      {R"({"rope_scaling": {"type": "linear"}})", "rope_scaling: `factor` must be"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
           "high_freq_factor": 4, "original_max_position_embeddings": 64}})",
       "`high_freq_factor` must be above `low_freq_factor`. Given: 4"},
      {R"({"rope_scaling": 5})", "`rope_scaling` must be an object"},
      {R"({"eos_token_id": 512})", "below `vocab_size` 512. Given: 512"},
      {R"({"eos_token_id": [1, "2"]})", "`eos_token_id` must be a token id or a list"},
      {R"({"tie_word_embeddings": "yes"})", "`tie_word_embeddings` must be true or false"},
      {R"({"model_type": "mistral", "sliding_window": 0})", "`sliding_window` must be an integer"},
      {R"({"layer_types": ["full_attention"]})", "`layer_types` must be a list of 3 names"},
  };
  for (const Case& test : cases) {
    EXPECT_THAT(Error(test.changes), HasSubstr(test.message)) << test.changes;
    EXPECT_THAT(Error(test.changes), testing::StartsWith("config.json: ")) << test.changes;
  }
  EXPECT_THAT(Error("{}", R"({"eos_token_id": -1})"),
              testing::StartsWith("generation_config.json: `eos_token_id` must be"));
}

TEST(ModelSpec, NamesAFileThatIsNotJson) {
  const auto error = [](const std::string& text) {
    return Message(ReadModelSpec(text, "").status());
  };
  EXPECT_THAT(error("{"), HasSubstr("config.json: is not valid JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("config.json: is not a JSON object"));
  EXPECT_THAT(error(std::string(100000, '[')), HasSubstr("config.json: is not valid JSON"));
}

}  // namespace
}  // namespace penstock::shard
