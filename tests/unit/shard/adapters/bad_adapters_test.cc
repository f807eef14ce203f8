// Folders of adapters that are refused: one line, the same on every rank, within a second.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/adapters/lora_adapter.h"
#include "shard/model/model.h"
#include "shard/weights/safetensors_writer.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kConfig[] = R"({"peft_type": "LORA", "r": 2, "target_modules": ["q_proj"]})";
constexpr char kModule[] = "base_model.model.model.layers.0.self_attn.q_proj";

Model OpenModel(std::uint32_t rank, std::uint32_t world) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path() / "model_checkpoints";
  ModelOptions options;
  options.folder = (folder / "llama-v5_biases").string();
  options.rank = rank;
  options.world = world;
  auto model = Model::Open(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// A good adapter, which tests damage.
struct Folder {
  TempFolder folder;
  std::map<std::string, std::vector<std::uint64_t>> tensors;
  DType dtype = DType::kFloat32;

  Folder() {
    folder.Write("adapter_config.json", kConfig);
    tensors[std::string(kModule) + ".lora_A.weight"] = {2, 32};
    tensors[std::string(kModule) + ".lora_B.weight"] = {32, 2};
    WriteTensors();
  }
  void Config(const std::string& keys) {
    folder.Write("adapter_config.json", R"({"peft_type": "LORA", "r": 2, )" + keys + "}");
  }
  void Targets(const std::string& keys) { Config(R"("target_modules": ["q_proj"], )" + keys); }
  void WriteTensors() const {
    std::vector<TensorSpec> table;
    for (const auto& [name, shape] : tensors) table.push_back({name, dtype, shape});
    SafetensorsWriter writer(folder / "adapter_model.safetensors", table);
    for (const TensorSpec& tensor : table) writer.Append(std::vector<std::byte>(tensor.Bytes()));
    EXPECT_EQ(writer.Finish(), absl::OkStatus());
  }
  void Rename(const std::string& from, const std::string& to) {
    auto tensor = tensors.extract(from);
    tensor.key() = to;
    tensors.insert(std::move(tensor));
    WriteTensors();
  }
  std::string Error(std::uint32_t rank, std::uint32_t world) const {
    const Model model = OpenModel(rank, world);
    const auto read = ReadLoraAdapter(folder.path(), model.program, model.weight_plan);
    return Message(read.status());
  }
};

struct Case {
  const char* name;
  std::function<void(Folder&)> spoil;
  std::string error;
};

const std::string kDown = std::string(kModule) + ".lora_A.weight";
const std::string kUp = std::string(kModule) + ".lora_B.weight";

std::vector<Case> BadConfigs() {
  return {
      {"no config", [](Folder& f) { fs::remove(f.folder / "adapter_config.json"); },
       "adapter_config.json"},
      {"no weights", [](Folder& f) { fs::remove(f.folder / "adapter_model.safetensors"); },
       "adapter_model.safetensors is missing"},
      {"weights of torch alone",
       [](Folder& f) {
         fs::rename(f.folder / "adapter_model.safetensors", f.folder / "adapter_model.bin");
       },
       "adapter_model.bin is not loaded"},
      {"no JSON", [](Folder& f) { f.folder.Write("adapter_config.json", "{"); },
       "adapter_config.json"},
      {"another method",
       [](Folder& f) {
         f.folder.Write("adapter_config.json", R"({"peft_type": "IA3", "target_modules": ["x"]})");
       },
       "`peft_type` must be LORA"},
      {"DoRA", [](Folder& f) { f.Targets(R"("use_dora": true)"); }, "`use_dora`"},
      {"whole modules", [](Folder& f) { f.Targets(R"("modules_to_save": ["lm_head"])"); },
       R"(`modules_to_save` is not supported: an adapter may not bring whole modules. Given: ["lm_head"])"},
      {"biases", [](Folder& f) { f.Targets(R"("bias": "all")"); }, "`bias` must be none"},
      {"a method that changes the base",
       [](Folder& f) { f.Targets(R"("init_lora_weights": "pissa")"); }, "`init_lora_weights`"},
      {"an unknown key", [](Folder& f) { f.Targets(R"("twist": {"by": 3})"); },
       "`twist` is not understood"},
      {"rank 0", [](Folder& f) { f.Targets(R"("r": 0)"); }, "`r` must be"},
      {"a wrong rank pattern", [](Folder& f) { f.Targets(R"("rank_pattern": {"(": 4})"); },
       "`rank_pattern.(`"},
      {"no targets", [](Folder& f) { f.Config(R"("lora_alpha": 8)"); }, "`target_modules` must be"},
      {"look-ahead", [](Folder& f) { f.Config(R"("target_modules": "(?=x).*")"); },
       "`target_modules` must be a regular expression of RE2"},
  };
}

std::vector<Case> BadWeights() {
  return {
      {"another rank", [](Folder& f) { f.Targets(R"("rank_pattern": {"q_proj": 4})"); },
       "has shape [2, 32]; must be [4, 32]: rank 4 for a base matrix of [32, 32]"},
      {"another width",
       [](Folder& f) {
         f.tensors[kDown] = {2, 48};
         f.WriteTensors();
       },
       "has shape [2, 48]; must be [2, 32]"},
      {"another height",
       [](Folder& f) {
         f.tensors[kUp] = {64, 2};
         f.WriteTensors();
       },
       "has shape [64, 2]; must be [32, 2]"},
      {"no lora_B",
       [](Folder& f) {
         f.tensors.erase(kUp);
         f.WriteTensors();
       },
       "lora_B of model.layers.0.self_attn.q_proj is missing"},
      {"a layer that the model has not",
       [](Folder& f) {
         f.Rename(kDown, "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight");
         f.Rename(kUp, "base_model.model.model.layers.7.self_attn.q_proj.lora_B.weight");
       },
       "the model has no linear module model.layers.7.self_attn.q_proj"},
      {"a module that no target names",
       [](Folder& f) { f.Config(R"("target_modules": ["k_proj"])"); },
       "model.layers.0.self_attn.q_proj, which `target_modules` does not name"},
      {"an embedding",
       [](Folder& f) {
         f.tensors["base_model.model.model.embed_tokens.lora_embedding_A"] = {2, 260};
         f.WriteTensors();
       },
       "embed_tokens.lora_embedding_A is not a lora_A or lora_B"},
      {"integers",
       [](Folder& f) {
         const std::string header =
             R"({")" + kDown + R"(":{"dtype":"I32","shape":[2,32],"data_offsets":[0,256]},")" +
             kUp + R"(":{"dtype":"F32","shape":[32,2],"data_offsets":[256,512]}})";
         std::string bytes(8, '\0');
         for (std::size_t i = 0; i < 8; ++i) {
           bytes[i] = static_cast<char>(header.size() >> (8 * i) & 255);
         }
         f.folder.Write("adapter_model.safetensors", bytes + header + std::string(512, '\0'));
       },
       "has type I32; must be F32, F16 or BF16"},
      {"a cut file",
       [](Folder& f) { fs::resize_file(f.folder / "adapter_model.safetensors", 200); },
       "adapter_model.safetensors"},
  };
}

TEST(BadAdapters, AreRefusedWithOneLine) {
  EXPECT_EQ(Folder().Error(0, 1), "") << "the folder is good before it is damaged";
  EXPECT_EQ(Folder().Error(1, 2), "");
  std::vector<Case> cases = BadConfigs();
  for (Case& one : BadWeights()) cases.push_back(std::move(one));
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    Folder folder;
    one.spoil(folder);
    const auto begin = std::chrono::steady_clock::now();
    const std::string error = folder.Error(0, 1);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
    EXPECT_THAT(error, HasSubstr(one.error));
    EXPECT_THAT(error, testing::StartsWith(folder.folder.path()));
    EXPECT_EQ(error.find('\n'), error.npos) << error;
    for (const std::uint32_t rank : {0u, 1u}) EXPECT_EQ(folder.Error(rank, 2), error);
  }
  EXPECT_THAT(Message(ReadLoraAdapter("/no/such", OpenModel(0, 1).program, {}).status()),
              HasSubstr("/no/such: is not a folder of an adapter"));
}

}  // namespace
}  // namespace penstock::shard
