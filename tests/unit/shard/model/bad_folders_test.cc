// Model files that must be refused: each within a second, with the same line on each rank, which
// names the culprit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/shard/model/bad_folder.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;
namespace json = boost::json;

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
     {"model.safetensors: is cut short: the file has ", "its header calls for "}},
    {"cut_off_header",
     "gemma-v5_mqa",
     [](const ModelFolder& folder) {
       folder.Write(kWeights, folder.Read(kWeights).substr(0, 100));
     },
     {"model.safetensors: is cut short: the file has 100 bytes, its header calls for "}},
    {"empty_file",
     "gemma-v5_mqa",
     [](const ModelFolder& folder) { folder.Write(kWeights, ""); },
     {"model.safetensors: is empty; fetch it again"}},
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

void PrintTo(const BadFiles& bad, std::ostream* out) { *out << bad.name; }

class BadModelFiles : public testing::TestWithParam<BadFiles> {};

TEST_P(BadModelFiles, AreRefusedInALineThatNamesTheCulprit) {
  const BadFiles& bad = GetParam();
  const BadFolder test(bad.name, bad.variant);
  bad.spoil(test.folder());
  test.ExpectRefused(bad.world, bad.words);
}

const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Folders, BadModelFiles, testing::ValuesIn(kBadFiles), kNameOf);

TEST(NoModelFolder, IsRefused) {
  ModelFolder folder("llama-v4_linear");
  const auto opened = Model::Open({folder.path() + "/config.json", {}, Device(), 0, 1});
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("config.json: is not a folder of a model"));
}

}  // namespace
}  // namespace penstock::shard
