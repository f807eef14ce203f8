#include "tools/make-model/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/support/temp_folder.h"
#include "tools/make-model/make_model.h"
#include "tools/make-model/random_values.h"

namespace penstock::make_model {
namespace {

// Reads GGUF by the description of the format, independently of the writer.
class Reader {
 public:
  explicit Reader(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    bytes_ = text.str();
    EXPECT_EQ(bytes_.substr(0, 4), "GGUF");
    at_ = 4;
    EXPECT_EQ(Number<std::uint32_t>(), 3u);
    const auto tensors = Number<std::uint64_t>();
    const auto facts = Number<std::uint64_t>();
    for (std::uint64_t i = 0; i < facts; ++i) ReadFact();
    for (std::uint64_t i = 0; i < tensors; ++i) ReadTensor();
    data_ = (at_ + 31) / 32 * 32;
  }

  struct Tensor {
    std::vector<std::uint64_t> sizes;
    std::uint32_t type = 0;
    std::uint64_t offset = 0;
  };
  std::vector<float> Floats(const std::string& name) const {
    const Tensor& tensor = tensors.at(name);
    std::uint64_t count = 1;
    for (const std::uint64_t size : tensor.sizes) count *= size;
    std::vector<float> values(count);
    EXPECT_LE(data_ + tensor.offset + 4 * count, bytes_.size());
    std::memcpy(values.data(), bytes_.data() + data_ + tensor.offset, 4 * count);
    return values;
  }

  std::map<std::string, std::string> texts;
  std::map<std::string, std::uint32_t> numbers;
  std::map<std::string, Tensor> tensors;

 private:
  template <class T>
  T Number() {
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string Text() {
    const auto size = Number<std::uint64_t>();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  void ReadFact() {
    const std::string key = Text();
    const auto type = Number<std::uint32_t>();
    if (type == 8) {
      texts[key] = Text();
    } else {
      numbers[key] = Number<std::uint32_t>();  // or the bits of a float
    }
  }
  void ReadTensor() {
    const std::string name = Text();
    Tensor& tensor = tensors[name];
    tensor.sizes.resize(Number<std::uint32_t>());
    for (std::uint64_t& size : tensor.sizes) size = Number<std::uint64_t>();
    tensor.type = Number<std::uint32_t>();
    tensor.offset = Number<std::uint64_t>();
  }

  std::string bytes_;
  std::size_t at_ = 0;
  std::size_t data_ = 0;
};

std::vector<float> Made(std::string_view name, std::size_t count, float scale) {
  std::vector<float> values(count);
  RandomValues(0, name, 0.0f, scale, DType::kFloat32)
      .Fill(std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(Gguf, HoldsTheWeightsUnderLlamaCppsNamesAndRotatedItsWay) {
  TempFolder folder;
  ModelOptions config;
  config.output = folder / "model";
  config.gguf = folder / "model.gguf";
  config.dtype = DType::kFloat32;
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  const Reader file(config.gguf);
  EXPECT_EQ(file.texts.at("general.architecture"), "llama");
  EXPECT_EQ(file.numbers.at("llama.block_count"), 2u);
  EXPECT_EQ(file.numbers.at("llama.attention.head_count_kv"), 4u);
  EXPECT_EQ(file.tensors.size(), 3u + 2u * 9u);
  EXPECT_EQ(file.tensors.at("output.weight").sizes, (std::vector<std::uint64_t>{64, 320}));
  const float scale = 1.0f / std::sqrt(64.0f);
  EXPECT_EQ(file.Floats("blk.1.ffn_up.weight"),
            Made("model.layers.1.mlp.up_proj.weight", 128 * 64, scale));
  // Heads of 16: rows 0 and 8 of a head, which rotate together, become neighbours.
  const auto made = Made("model.layers.0.self_attn.q_proj.weight", 128 * 64, scale);
  const auto stored = file.Floats("blk.0.attn_q.weight");
  for (const auto& [from, to] : {std::pair{0, 0}, {8, 1}, {1, 2}, {15, 15}, {16 + 8, 16 + 1}}) {
    EXPECT_TRUE(std::equal(made.begin() + from * 64, made.begin() + (from + 1) * 64,
                           stored.begin() + to * 64))
        << from;
  }
}

TEST(Gguf, NormsAndBiasesAreFloatsAndQwenKeepsItsOrder) {
  TempFolder folder;
  ModelOptions config;
  config.output = folder / "model";
  config.type = "qwen2";
  config.gguf = folder / "model.gguf";
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  const Reader file(config.gguf);
  EXPECT_EQ(file.texts.at("general.architecture"), "qwen2");
  EXPECT_EQ(file.tensors.at("blk.0.attn_q.weight").type, 30u);
  EXPECT_EQ(file.tensors.at("blk.0.attn_q.bias").type, 0u);
  EXPECT_EQ(file.tensors.at("output_norm.weight").type, 0u);
}

TEST(Gguf, AWindowIsRefused) {
  TempFolder folder;
  ModelOptions config;
  config.output = folder / "model";
  config.type = "mistral";
  config.sliding_window = 32;
  config.gguf = folder / "model.gguf";
  EXPECT_EQ(MakeModel(config, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::make_model
