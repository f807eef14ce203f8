// Model folders that must be refused: each within a second, with the same line on each rank, which
// names the culprit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <ostream>

#include "tests/unit/shard/model/model_folder.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

constexpr std::uint64_t kSlack = 64u << 20;

// What is wrong with a config.json.
struct BadConfig {
  const char* name;
  const char* variant;
  const char* patch;  // ModelFolder::PatchJson
  std::vector<std::string> words;
};

const BadConfig kBadConfigs[] = {
    // ---- what kind of model it is ----
    {"unknown_model_type",
     "llama-v4_llama3",
     R"({"model_type": "lama"})",
     {"`model_type` must be one of ", "; the nearest is llama", "Given: \"lama\""}},
    {"model_type_with_a_vision_tower",
     "qwen3-v4_tied",
     R"({"model_type": "qwen3_vl"})",
     {"`model_type`", "the nearest is qwen3", "\"qwen3_vl\""}},
    {"no_model_type", "gpt2-v4_bare", R"({"model_type": null})", {"`model_type`", "nothing"}},
    {"a_classifier",
     "gemma2-v5_layer_types",
     R"({"architectures": ["Gemma2ForTokenClassification"]})",
     {"`architectures` must be a causal language model", "Gemma2ForTokenClassification"}},
    {"no_text_config",
     "gemma3-v4_wrapped",
     R"({"text_config": null})",
     {"`text_config` must be an object, the text model of Gemma3ForConditionalGeneration"}},
    {"quantisation_format",
     "llama-v4_llama3",
     R"({"quantization_config": {"quant_method": "quip", "bits": 4}})",
     {"quantization_config", "\"quip\""}},
    {"compression_format",
     "qwen3-v4_tied",
     R"({"compression_config": {"format": "pack-quantized"}})",
     {"`compression_config` must be absent", "pack-quantized"}},
    {"stored_type",
     "mistral-v4_defaults",
     R"({"torch_dtype": "int4"})",
     {"`torch_dtype` must be one of float32, bfloat16, float16", "\"int4\""}},
    // ---- RoPE ----
    {"rope_type",
     "llama-v5_yarn",
     R"({"rope_parameters": {"rope_type": "ntk"}})",
     {"config.json: rope_parameters: `rope_type` must be one of default, linear", "\"ntk\""}},
    {"rope_type_of_transformers_4",
     "qwen2-v4_yarn",
     R"({"rope_scaling": {"type": "mrope2"}})",
     {"config.json: rope_scaling: `type` must be one of default, linear", "\"mrope2\""}},
    {"rope_type_in_a_wrapper",
     "gemma3-v4_wrapped",
     R"({"text_config": {"rope_scaling": {"rope_type": 7}}})",
     {"rope_scaling: `rope_type` must be a string", "Given: 7"}},
    {"rope_factor",
     "llama-v4_linear",
     R"({"rope_scaling": {"factor": 1e12}})",
     {"rope_scaling: `factor` must be a number from 1 to 1000000"}},
    {"rope_theta", "mistral-v4_defaults", R"({"rope_theta": 0})", {"`rope_theta`", "Given: 0"}},
    {"rope_factors",
     "phi3-v4_longrope_partial",
     R"({"rope_scaling": {"short_factor": [1.0]}})",
     {"`short_factor` must be a list of"}},
    {"rope_long_factors",
     "phi3-v4_longrope_partial",
     R"({"rope_scaling": {"long_factor": [1.0, 2.0]}})",
     {"`long_factor` must be a list of 3 numbers"}},
    {"embeddings_wider_than_the_stream",
     "opt-v4_post_norm",
     R"({"word_embed_proj_dim": 33})",
     {"`word_embed_proj_dim` must be an integer from 1 to 32", "Given: 33"}},
    // ---- experts ----
    {"router_scores",
     "glm4_moe-v4_groups",
     R"({"scoring_func": "tanh"})",
     {"`scoring_func` must be sigmoid or absent", "\"tanh\""}},
    {"router_method",
     "glm4_moe-v4_groups",
     R"({"topk_method": "greedy"})",
     {"`topk_method` must be noaux_tc or absent", "\"greedy\""}},
    {"router_method_of_a_softmax",
     "qwen3_moe-v4_single",
     R"({"topk_method": "random"})",
     {"`topk_method` must be greedy or absent", "\"random\""}},
    {"router_scores_of_deepseek",
     "deepseek_v3-v4_yarn",
     R"({"scoring_func": "softmax"})",
     {"`scoring_func` must be sigmoid or absent", "\"softmax\""}},
    {"router_method_of_deepseek",
     "deepseek_v2-v4_groups",
     R"({"topk_method": "noaux_tc"})",
     {"`topk_method` must be greedy or group_limited_greedy or absent", "\"noaux_tc\""}},
    {"blocks_of_a_quantised_matrix",
     "qwen3_moe-v4_fp8",
     R"({"quantization_config": {"weight_block_size": [8, 16]}})",
     {"model.safetensors: tensor model.layers.0.", "weight_scale_inv has shape [", "asks for ["}},
    {"more_experts_than_there_are",
     "mixtral-v4_hub",
     R"({"num_experts_per_tok": 9})",
     {"`num_experts_per_tok` must be an integer from 1 to 6", "Given: 9"}},
    {"more_experts_than_there_are_by_default",
     "qwen3_moe-v5_window",
     R"({"num_experts_per_tok": null})",
     {"`num_experts_per_tok` must be at most the number of experts, 6"}},
    {"expert_groups",
     "glm4_moe-v4_groups",
     R"({"n_group": 3})",
     {"`n_group` must be a divisor of the 8 experts", "Given: 3"}},
    {"no_experts", "mixtral-v4_hub", R"({"num_local_experts": 0})", {"`num_local_experts`", "0"}},
    // ---- quantised matrices ----
    {"bits_of_gptq",
     "llama-v4_gptq",
     R"({"quantization_config": {"bits": 8}})",
     {"model.safetensors: tensor model.layers.0.", "qweight has shape [", "asks for ["}},
    {"groups_of_gptq",
     "llama-v4_gptq",
     R"({"quantization_config": {"group_size": 32}})",
     {"model.safetensors: tensor model.layers.0.", "qzeros has shape [", "asks for ["}},
    {"other_bits_by_module",
     "llama-v4_gptq",
     R"({"quantization_config": {"dynamic": {"-:mlp": {}}}})",
     {"`dynamic` must be empty"}},
    {"unknown_key_of_gptq",
     "llama-v4_gptq",
     R"({"quantization_config": {"rotation": "hadamard"}})",
     {"config.json: quantization_config: ", "rotation"}},
    {"order_of_awq",
     "llama-v4_awq",
     R"({"quantization_config": {"version": "gemv"}})",
     {"config.json: quantization_config: `version`", "\"gemv\""}},
    {"groups_of_awq",
     "llama-v4_awq",
     R"({"quantization_config": {"group_size": 8}})",
     {"model.safetensors: tensor model.layers.0.", "qzeros has shape [", "asks for ["}},
    {"quantised_module_that_is_said_to_be_plain",
     "llama-v4_awq",
     R"({"quantization_config": {"modules_to_not_convert": ["q_proj"]}})",
     {"model.layers.0.self_attn.q_proj.qweight has dtype I32", "it is not quantised"}},
    {"values_of_bitsandbytes",
     "llama-v4_nf4",
     R"({"quantization_config": {"bnb_4bit_quant_type": "nf3"}})",
     {"`bnb_4bit_quant_type` must be nf4 or fp4", "\"nf3\""}},
    {"eight_and_four_bits",
     "llama-v4_nf4",
     R"({"quantization_config": {"load_in_8bit": true}})",
     {"`load_in_4bit` must be true, or `load_in_8bit`, but not both"}},
    {"bits_of_compressed_tensors",
     "qwen2-v4_packed",
     R"({"quantization_config": {"config_groups": {"group_0": {"weights": {"num_bits": 6}}}}})",
     {"`num_bits` must be 4 or 8 for pack-quantized", "Given: 6"}},
    {"quantised_keys_and_values",
     "qwen2-v4_packed",
     R"({"quantization_config": {"kv_cache_scheme": {"num_bits": 8}}})",
     {"config.json: quantization_config: `kv_cache_scheme`"}},
    {"rotated_weights",
     "qwen2-v4_packed",
     R"({"quantization_config": {"transform_config": {"a": 1}}})",
     {"`transform_config` must be empty: rotated weights are not read"}},
    {"unknown_fp8",
     "qwen3-v4_fp8",
     R"({"quantization_config": {"fmt": "e5m2"}})",
     {"`fmt` must be e4m3", "\"e5m2\""}},
    // ---- layers and activations ----
    {"activation",
     "gpt2-v4_bare",
     R"({"activation_function": "sinh"})",
     {"`activation_function` must be one of silu, ", "\"sinh\""}},
    {"activation_of_experts",
     "mixtral-v4_hub",
     R"({"hidden_act": "gelu"})",
     {"`hidden_act` must be silu", "\"gelu\""}},
    {"layer_type",
     "gemma2-v5_layer_types",
     R"({"layer_types": ["full_attention", "mamba", "sliding_attention"]})",
     {"`layer_types[1]` must be", "sliding_attention", "Given: \"mamba\""}},
    {"layer_types_of_the_wrong_length",
     "qwen2-v5_layer_types",
     R"({"layer_types": ["full_attention"]})",
     {"`layer_types` must be a list of 3 names"}},
    {"rope_layers_of_the_wrong_length",
     "smollm3-v4_list",
     R"({"no_rope_layers": [1, 1]})",
     {"`no_rope_layers` must be a list of 4 flags", "[1,1]"}},
    // ---- numbers ----
    {"zero", "llama-v4_llama3", R"({"hidden_size": 0})", {"`hidden_size`", "Given: 0"}},
    {"negative", "gpt2-v4_bare", R"({"n_layer": -2})", {"`n_layer`", "Given: -2"}},
    {"huge",
     "opt-v4_pre_norm",
     R"({"vocab_size": 99999999999})",
     {"`vocab_size` must be an integer from 1 to 16777216", "Given: 99999999999"}},
    {"beyond_64_bits",
     "gpt_neox-v4_parallel",
     R"({"max_position_embeddings": 99999999999999999999})",
     {"`max_position_embeddings` must be an integer from 1 to"}},
    {"fraction",
     "phi3-v4_window",
     R"({"intermediate_size": 64.5})",
     {"`intermediate_size`", "64.5"}},
    {"text_for_a_number",
     "granite-v4_tied",
     R"({"num_attention_heads": "4"})",
     {"`num_attention_heads` must be an integer from 1 to", "Given: \"4\""}},
    {"list_for_a_number", "qwen2-v4_tied", R"({"num_hidden_layers": [3]})", {"Given: [3]"}},
    {"text_for_a_flag",
     "qwen3-v4_tied",
     R"({"tie_word_embeddings": "yes"})",
     {"`tie_word_embeddings` must be true or false", "\"yes\""}},
    {"heads_that_do_not_divide",
     "llama-v4_llama3",
     R"({"num_key_value_heads": 3})",
     {"`num_key_value_heads` must be a divisor of `num_attention_heads` 4", "Given: 3"}},
    {"negative_window", "mistral-v4_defaults", R"({"sliding_window": -1})", {"`sliding_window`"}},
    {"end_token_beyond_the_vocabulary",
     "llama-v4_llama3",
     R"({"vocab_size": 100})",
     {"`eos_token_id` must be a token id", "below `vocab_size` 100", "Given: 257"}},
    // ---- sizes that the tensors do not have ----
    {"another_vocabulary",
     "mixtral-v4_hub",
     R"({"vocab_size": 261})",
     {"model.safetensors: tensor model.embed_tokens.weight has shape [260, 32]", "[261, 32]"}},
    {"more_layers_than_the_file",
     "qwen3_moe-v4_single",
     R"({"num_hidden_layers": 4096})",
     {"tensor model.layers.4.input_layernorm.weight is missing; config.json asks for [32]"}},
    {"fewer_layers_than_the_file",
     "deepseek_v3-v4_yarn",
     R"({"num_hidden_layers": 2})",
     {"model.safetensors: tensor model.layers.3.", "has no place in this model type"}},
    {"fewer_layers_without_one_that_predicts",
     "glm4_moe-v5_plain",
     R"({"num_hidden_layers": 2})",
     {"model.safetensors: tensor model.layers.2.", "has no place in this model type"}},
    {"millions_of_heads",
     "gpt_neox-v4_parallel",
     R"({"num_attention_heads": 16384, "head_dim": 2, "rotary_pct": 1, "num_hidden_layers": 4096})",
     {"tensor gpt_neox.layers.0.attention.query_key_value.weight has shape [96, 32]", "[98304, "}},
    {"millions_of_experts",
     "qwen3_moe-v5_fused",
     R"({"num_local_experts": 65536, "num_hidden_layers": 4096})",
     {"model.layers.0.mlp.gate.weight has shape [6, 32]", "[65536, 32]"}},
    {"no_head",
     "opt-v4_pre_norm",
     R"({"tie_word_embeddings": false})",
     {"tensor lm_head.weight is missing; config.json asks for [260, 32]"}},
};

// What is wrong with the files.
struct BadFiles {
  const char* name;
  const char* variant;
  void (*spoil)(const ModelFolder& folder);
  std::vector<std::string> words;
  std::uint32_t world = 2;
};

constexpr char kWeights[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";

void ReplaceInConfig(const ModelFolder& folder, const std::string& old, const std::string& text) {
  std::string config = folder.Read("config.json");
  config.replace(config.find(old), old.size(), text);
  folder.Write("config.json", config);
}

void Rename(json::object& header, const char* old, const char* name) {
  const json::value entry = header.at(old);
  header.erase(old);
  header[name] = entry;
}

json::array& Offsets(json::object& header, const char* tensor) {
  return header.at(tensor).at("data_offsets").as_array();
}

void RemoveWeights(const ModelFolder& folder) {
  folder.Remove(kWeights);
  folder.Remove("tokenizer.json");
}

const BadFiles kBadFiles[] = {
    // ---- config.json ----
    {"nan",
     "granite-v4_tied",
     [](const ModelFolder& folder) { ReplaceInConfig(folder, "0.01", "NaN"); },
     {"config.json: is not valid JSON at line ", "(`NaN"}},
    {"cut_off_config",
     "phi3-v4_window",
     [](const ModelFolder& folder) { folder.Write("config.json", "{\"model_type\": \"phi3\",\n"); },
     {"config.json: is not valid JSON at line 2, column 1"}},
    {"config_that_is_a_list",
     "gpt2-v4_bare",
     [](const ModelFolder& folder) { folder.Write("config.json", "[]"); },
     {"config.json: is not a JSON object"}},
    {"no_config",
     "llama-v4_linear",
     [](const ModelFolder& folder) { folder.Remove("config.json"); },
     {"config.json: cannot be read: No such file"}},
    {"generation_config",
     "llama-v4_linear",
     [](const ModelFolder& folder) {
       folder.PatchJson("generation_config.json", R"({"eos_token_id": [-1]})");
     },
     {"generation_config.json: `eos_token_id` must be a token id", "Given: [-1]"}},
    // ---- tensors ----
    {"renamed_tensor",
     "qwen3-v4_tied",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         Rename(header, "model.layers.1.self_attn.q_norm.weight", "model.layers.1.q_norm.weight");
       });
     },
     {"tensor model.layers.1.self_attn.q_norm.weight is missing; config.json asks for ["}},
    {"scales_without_their_blocks",
     "gpt_oss-v4_mxfp4",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         Rename(header, "model.layers.0.mlp.experts.down_proj_scales", "model.layers.0.scales");
       });
     },
     {"tensor model.layers.0.mlp.experts.down_proj_scales is missing"}},
    {"integers_without_their_scales",
     "llama-v4_awq",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         Rename(header, "model.layers.1.mlp.up_proj.scales", "model.layers.1.mlp.up_proj.scale");
       });
     },
     {"tensor model.layers.1.mlp.up_proj.scales is missing"}},
    {"zero_points_of_another_type",
     "llama-v4_gptq",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         header.at("model.layers.0.mlp.down_proj.qzeros").at("dtype") = "F32";
       });
     },
     {"model.safetensors: tensor model.layers.0.mlp.down_proj.qzeros has dtype F32"}},
    {"blocks_without_their_state",
     "llama-v4_nf4",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         Rename(header, "model.layers.0.mlp.up_proj.weight.absmax", "model.layers.0.absmax");
       });
     },
     {"tensor model.layers.0.mlp.up_proj.weight.absmax is missing"}},
    {"a_plain_matrix_beside_its_integers",
     "llama-v4_gptq",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         Rename(header, "model.layers.0.mlp.up_proj.qweight", "model.layers.0.mlp.up_proj.weight");
       });
     },
     {"model.safetensors: tensor model.layers.0.mlp.up_proj.weight has "}},
    {"surplus_tensor",
     "mixtral-v4_hub",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         header["model.layers.0.gate.bias"] = {
             {"dtype", "U8"}, {"shape", json::array{0}}, {"data_offsets", {0, 0}}};
       });
     },
     {"model.safetensors: tensor model.layers.0.gate.bias [0] has no place in this model type"}},
    {"wrong_shape",
     "gpt_neox-v4_parallel",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         json::value& tensor = header.at("gpt_neox.layers.0.mlp.dense_h_to_4h.weight");
         std::swap(tensor.at("shape").at(0), tensor.at("shape").at(1));
       });
     },
     {"model.safetensors: tensor gpt_neox.layers.0.mlp.dense_h_to_4h.weight has shape [32, 64]; "
      "config.json asks for [64, 32]"}},
    {"wrong_type",
     "mistral-v4_defaults",
     [](const ModelFolder& folder) {
       folder.ChangeHeader(
           [](json::object& header) { header.at("model.norm.weight").at("dtype") = "I32"; });
     },
     {"model.safetensors: tensor model.norm.weight has dtype I32; Penstock loads"}},
    {"name_of_two_lines",
     "gpt2-v4_bare",
     [](const ModelFolder& folder) {
       folder.ChangeHeader(
           [](json::object& header) { Rename(header, "wpe.weight", "wpe\nweight"); });
     },
     {"model.safetensors: tensor name \"wpe?weight\" has a control character"}},
    // ---- safetensors files ----
    {"cut_off_data",
     "opt-v4_pre_norm",
     [](const ModelFolder& folder) {
       WeightFile weights = folder.ReadWeights();
       weights.data.resize(weights.data.size() / 2);
       folder.WriteWeights(weights);
     },
     {"model.safetensors: tensor \"", "bytes of data in the file"}},
    {"cut_off_header",
     "gemma-v5_mqa",
     [](const ModelFolder& folder) {
       folder.Write(kWeights, folder.Read(kWeights).substr(0, 100));
     },
     {"model.safetensors: `header length` must be at most 92 bytes in a file of 100"}},
    {"empty_file",
     "gemma-v5_mqa",
     [](const ModelFolder& folder) { folder.Write(kWeights, ""); },
     {"model.safetensors: `file size` must be at least 8 bytes. Given: 0"}},
    {"header_longer_than_memory",
     "qwen2-v4_tied",
     [](const ModelFolder& folder) { folder.Write(kWeights, LengthPrefix(1ull << 60) + "{}"); },
     {"model.safetensors: `header length` must be at most 2 bytes", "Given: 1152921504606846976"}},
    {"header_that_is_no_json",
     "qwen2-v4_tied",
     [](const ModelFolder& folder) {
       WeightFile weights = folder.ReadWeights();
       weights.header[weights.header.size() / 2] = '\x01';
       folder.WriteWeights(weights);
     },
     {"model.safetensors: "}},
    {"overlapping_tensors",
     "smollm3-v4_list",
     [](const ModelFolder& folder) {
       folder.ChangeHeader([](json::object& header) {
         Offsets(header, "model.norm.weight") =
             Offsets(header, "model.layers.0.input_layernorm.weight");
       });
     },
     {"model.safetensors: tensor \"model.norm.weight\"", "an overlap"}},
    {"missing_file",
     "llama-v4_llama3",
     [](const ModelFolder& folder) { folder.Remove("model-00002-of-00002.safetensors"); },
     {"model-00002-of-00002.safetensors: cannot be opened: No such file", kIndex}},
    {"index_with_a_tensor_too_many",
     "llama-v4_llama3",
     [](const ModelFolder& folder) {
       folder.PatchJson(kIndex, R"({"weight_map": {"x": "model-00002-of-00002.safetensors"}})");
     },
     {"model.safetensors.index.json: places tensor x in model-00002-of-00002.safetensors"}},
    {"index_that_leaves_the_folder",
     "llama-v4_llama3",
     [](const ModelFolder& folder) {
       folder.PatchJson(kIndex, R"({"weight_map": {"x": "../x.safetensors"}})");
     },
     {"model.safetensors.index.json: `weight_map[x]` must be a plain file name", "../x"}},
    {"index_that_is_no_json",
     "llama-v4_llama3",
     [](const ModelFolder& folder) { folder.Write(kIndex, "{\"weight_map\": }"); },
     {"model.safetensors.index.json: is not valid JSON at line 1, column 16 (`}`)"}},
    // ---- other formats ----
    {"pickled_weights",
     "gpt2-v4_bare",
     [](const ModelFolder& folder) {
       RemoveWeights(folder);
       folder.Write("pytorch_model.bin", "");
     },
     {"its format is PyTorch (pytorch_model.bin), which is not read"}},
    {"gguf",
     "qwen2-v4_tied",
     [](const ModelFolder& folder) {
       RemoveWeights(folder);
       folder.Remove("config.json");
       folder.Write("tiny.Q4_K_M.gguf", "GGUF");
     },
     {"its format is GGUF (tiny.Q4_K_M.gguf), which is not read"}},
    {"gguf_under_the_name_of_safetensors",
     "qwen2-v4_tied",
     [](const ModelFolder& folder) { folder.Write(kWeights, "GGUF" + std::string(200, '\3')); },
     {"model.safetensors: is a GGUF file, which is not read"}},
    {"pointer_of_git_lfs",
     "gemma2-v4_softcaps",
     [](const ModelFolder& folder) {
       folder.Write(kWeights,
                    "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 123\n");
     },
     {"model.safetensors: is a pointer of Git LFS"}},
    {"adapter",
     "llama-v4_linear",
     [](const ModelFolder& folder) {
       RemoveWeights(folder);
       folder.Remove("config.json");
       folder.Write("adapter_config.json", "{}");
       folder.Write("adapter_model.safetensors", "");
     },
     {"it is an adapter (adapter_config.json), which is not loaded"}},
    {"adapter_with_the_config_of_its_base",
     "llama-v4_linear",
     [](const ModelFolder& folder) {
       RemoveWeights(folder);
       folder.Write("adapter_config.json", "{}");
       folder.Write("adapter_model.safetensors", "");
     },
     {"it is an adapter (adapter_config.json), which is not loaded"}},
    {"no_weights",
     "phi3-v4_window",
     [](const ModelFolder& folder) { folder.Remove(kWeights); },
     {"has neither model.safetensors nor model.safetensors.index.json"}},
    // ---- ranks ----
    {"heads_of_three_ranks",
     "llama-v4_llama3",
     [](const ModelFolder&) {},
     {"--num-shard 3: must be a divisor of the model's 4 attention heads: 1, 2 or 4"},
     3},
    {"heads_of_eight_ranks",
     "glm4_moe-v4_groups",
     [](const ModelFolder&) {},
     {"--num-shard 8: must be a divisor of the model's 4 attention heads: 1, 2 or 4"},
     8},
};

class BadFolder {
 public:
  BadFolder(const char* name, const char* variant) : name_(name), folder_(variant) {
    const Refusal unchanged = folder_.Open();
    EXPECT_EQ(unchanged.error, "") << variant;
  }
  const ModelFolder& folder() const { return folder_; }

  void ExpectRefused(std::uint32_t world, const std::vector<std::string>& words) const {
    const Refusal first = folder_.Open(0, world);
    const Refusal last = folder_.Open(world - 1, world);
    for (const std::string& word : words) EXPECT_THAT(first.error, HasSubstr(word));
    EXPECT_EQ(first.error, last.error);
    EXPECT_THAT(first.error, testing::Not(testing::ContainsRegex("[[:cntrl:]]")));
    EXPECT_LT(first.error.size(), 1000u);
    EXPECT_LT(first.seconds, 1.0);
    EXPECT_LE(first.peak_bytes, folder_.Bytes() + kSlack);
    std::cout << "bad-folder " << name_ << ": " << first.seconds * 1000 << " ms: " << first.error
              << std::endl;
  }

 private:
  const char* name_;
  ModelFolder folder_;
};

void PrintTo(const BadConfig& bad, std::ostream* out) { *out << bad.name; }
void PrintTo(const BadFiles& bad, std::ostream* out) { *out << bad.name; }

class BadConfigs : public testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigs, AreRefusedInALineThatNamesTheCulprit) {
  const BadConfig& bad = GetParam();
  const BadFolder test(bad.name, bad.variant);
  test.folder().PatchJson("config.json", bad.patch);
  test.ExpectRefused(2, bad.words);
}

class BadModelFiles : public testing::TestWithParam<BadFiles> {};

TEST_P(BadModelFiles, AreRefusedInALineThatNamesTheCulprit) {
  const BadFiles& bad = GetParam();
  const BadFolder test(bad.name, bad.variant);
  bad.spoil(test.folder());
  test.ExpectRefused(bad.world, bad.words);
}

const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Folders, BadConfigs, testing::ValuesIn(kBadConfigs), kNameOf);
INSTANTIATE_TEST_SUITE_P(Folders, BadModelFiles, testing::ValuesIn(kBadFiles), kNameOf);

TEST(NoModelFolder, IsRefused) {
  ModelFolder folder("llama-v4_linear");
  const auto opened = Model::Open({folder.path() + "/config.json", {}, Device(), 0, 1});
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("config.json: is not a folder of a model"));
}

}  // namespace
}  // namespace penstock::shard
