// Quantised checkpoints that are refused, each with one line that names the culprit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/status.h"
#include "shard/weights/config_reader.h"
#include "shard/weights/formats/stored_format.h"
#include "tests/unit/shard/weights/stored_tensors.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

std::string ConfigError(const std::string& quantization) {
  const auto object = ParseConfig(quantization, "config.json");
  EXPECT_TRUE(object.ok()) << object.status();
  return Message(ReadStoredFormat({*object, "config.json: quantization_config"}).status());
}

TEST(BadFormats, ConfigsNameTheKeyAndWhatItMustBe) {
  const struct {
    const char* config;
    const char* words;
  } cases[] = {
      {R"({"quant_method": "quip"})",
       "config.json: quantization_config: `quant_method` must be one of awq, bitsandbytes, "},
      {R"({"quant_method": "fp8", "fmt": "e5m2"})", "`fmt` must be e4m3. Given: \"e5m2\""},
      {R"({"quant_method": "fp8", "activation_scheme": "token"})",
       "`activation_scheme` must be dynamic or static"},
      {R"({"quant_method": "fp8", "kv_cache_scheme": {"num_bits": 8}})",
       "`kv_cache_scheme` must be absent: Penstock does not know what it changes"},
      {R"({"quant_method": "fp8", "modules_to_not_convert": ["("]})",
       "`modules_to_not_convert[0]` must be an expression"},
      {R"({"quant_method": "gptq", "group_size": 32})", "`bits` must be an integer"},
      {R"({"quant_method": "gptq", "bits": 5, "group_size": 32})", "`bits` must be 2, 3, 4 or 8"},
      {R"({"quant_method": "gptq", "bits": 4})", "`group_size` must be a number"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 0})",
       "`group_size` must be an integer"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "marlin"})",
       "`checkpoint_format` must be gptq or gptq_v2. Given: \"marlin\""},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "dynamic": {"+:lm": {"bits": 8}}})",
       "`dynamic` must be empty"},
      {R"({"quant_method": "awq", "bits": 3, "group_size": 32})",
       "`bits` must be an integer from 4"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemv"})",
       "`version` must be gemm. Given: \"gemv\""},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": false})",
       "`zero_point` must be true"},
      {R"({"load_in_4bit": true, "load_in_8bit": true})", "but not both"},
      {R"({"load_in_4bit": true, "bnb_4bit_quant_type": "af4"})", "must be nf4 or fp4"},
      {R"({"quant_method": "compressed-tensors", "format": "marlin-24", "config_groups": {
           "a": {"targets": ["Linear"], "weights": {}}}})",
       "`format` must be one of pack-quantized, int-quantized"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})",
       "`config_groups` must be an object of groups"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {
           "a": {"targets": ["Linear"], "weights": {"num_bits": 3}}}})",
       "config_groups: a: weights: `num_bits` must be 4 or 8 for pack-quantized. Given: 3"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {
           "a": {"targets": ["re:("], "weights": {"num_bits": 4}}}})",
       "`targets[0]` must be an expression"},
      {R"({"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {
           "a": {"targets": ["Linear"], "weights": {}, "output_activations": {"num_bits": 8}}}})",
       "`output_activations` must be absent"},
      {R"({"quant_method": "compressed-tensors", "transform_config": {"a": 1}})",
       "`transform_config` must be empty"},
      {R"({"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-bitmask"}})",
       "sparsity_config: `format` must be dense"},
      {R"({"quant_method": "compressed-tensors", "quantization_status": "frozen"})",
       "`quantization_status` must be compressed"},
  };
  for (const auto& test : cases) EXPECT_THAT(ConfigError(test.config), HasSubstr(test.words));
}

constexpr char kGptq[] =
    R"({"quant_method": "gptq", "bits": 4, "group_size": 8, "desc_act": true})";
constexpr char kAwq[] = R"({"quant_method": "awq", "bits": 4, "group_size": 8})";
constexpr char kPack[] = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
    "ignore": ["re:.*gate$"], "config_groups": {"a": {"targets": ["Linear"], "weights": {
      "num_bits": 4, "strategy": "group", "group_size": 8, "symmetric": false}}}})";
constexpr char kNf4[] = R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})";

// 8 x 16, with zeros for all values.
std::vector<Stored> GptqTensors() {
  std::vector<std::uint32_t> index(16);
  for (std::uint32_t k = 0; k < 16; ++k) index[k] = k / 8;
  return {{"m.qweight", "I32", "[2,8]", std::string(64, '\0')},
          {"m.qzeros", "I32", "[2,1]", std::string(8, '\0')},
          {"m.scales", "F16", "[2,8]", std::string(32, '\0')},
          {"m.g_idx", "I32", "[16]", Words(index)}};
}

std::vector<Stored> AwqTensors() {
  return {{"m.qweight", "I32", "[16,1]", std::string(64, '\0')},
          {"m.qzeros", "I32", "[2,1]", std::string(8, '\0')},
          {"m.scales", "F16", "[2,8]", std::string(32, '\0')}};
}

std::vector<Stored> PackTensors() {
  return {{"m.weight_packed", "I32", "[8,2]", std::string(64, '\0')},
          {"m.weight_scale", "F32", "[8,2]", std::string(64, '\0')},
          {"m.weight_shape", "I32", "[2]", Words({8, 16})},
          {"m.weight_zero_point", "I32", "[1,2]", std::string(8, '\0')}};
}

std::vector<Stored> Nf4Tensors() {
  const std::string state =
      R"({"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": [8, 16]})";
  return {{"m.weight", "U8", "[64,1]", std::string(64, '\0')},
          {"m.weight.absmax", "F32", "[2]", std::string(8, '\0')},
          {"m.weight.quant_map", "F32", "[16]", std::string(64, '\0')},
          {"m.weight.quant_state.bitsandbytes__nf4", "U8", "[" + std::to_string(state.size()) + "]",
           state}};
}

std::string TensorError(const std::vector<Stored>& tensors, const std::string& quantization,
                        const std::string& module = "m") {
  const TempFolder folder;
  const Checkpoint checkpoint = OpenStored(folder, tensors);
  return Message(CheckParts(
      checkpoint, PlanOf({module + ".weight", {8, 16}, {0, 8}, {0, 16}, 0}, quantization)));
}

struct BadTensor {
  const char* quantization;
  std::vector<Stored> tensors;
  std::size_t index;   // of the tensor that is replaced
  Stored replacement;  // without a name: the tensor is missing
  const char* words;
};

void ExpectRefused(const std::vector<BadTensor>& cases) {
  for (const BadTensor& test : cases) {
    ASSERT_EQ(TensorError(test.tensors, test.quantization), "");
    std::vector<Stored> tensors = test.tensors;
    tensors[test.index] = test.replacement;
    if (test.replacement.name.empty()) {
      tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(test.index));
    }
    const std::string error = TensorError(tensors, test.quantization);
    EXPECT_THAT(error, HasSubstr(test.words));
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(BadFormats, TensorsOfGptqAndAwqAreNamedWithWhatTheyMustBe) {
  const std::string four(4, '\0'), sixty_four(64, '\0');
  std::vector<std::uint32_t> far(16), negative(16);
  far[5] = 2;
  negative[3] = 0xFFFFFFFFu;
  ExpectRefused(
      {{kGptq,
        GptqTensors(),
        0,
        {"m.qweight", "I32", "[8,2]", sixty_four},
        "tensor m.qweight has shape [8, 2]; config.json asks for [2, 8]"},
       {kGptq,
        GptqTensors(),
        0,
        {"m.qweight", "F32", "[2,8]", sixty_four},
        "tensor m.qweight has dtype F32; Penstock loads I32 here"},
       {kGptq,
        GptqTensors(),
        1,
        {"m.qzeros", "I32", "[1,1]", four},
        "tensor m.qzeros has shape [1, 1]; config.json asks for [2, 1]"},
       {kGptq, GptqTensors(), 2, {}, "tensor m.scales is missing; config.json asks for [2, 8]"},
       {kGptq, GptqTensors(), 3, {}, "tensor m.g_idx is missing; config.json asks for [16]"},
       {kGptq,
        GptqTensors(),
        3,
        {"m.g_idx", "I32", "[16]", Words(far)},
        "tensor m.g_idx has group 2 at column 5; there are 2 groups"},
       {kGptq,
        GptqTensors(),
        3,
        {"m.g_idx", "I32", "[16]", Words(negative)},
        "tensor m.g_idx has group -1 at column 3; there are 2 groups"},
       {kAwq,
        AwqTensors(),
        0,
        {"m.qweight", "I32", "[8,2]", sixty_four},
        "tensor m.qweight has shape [8, 2]; config.json asks for [16, 1]"},
       {kAwq, AwqTensors(), 1, {}, "tensor m.qzeros is missing; config.json asks for [2, 1]"},
       {kAwq,
        AwqTensors(),
        2,
        {"m.scales", "U8", "[2,8]", std::string(16, '\0')},
        "tensor m.scales has dtype U8; Penstock loads F16, BF16 and F32 here"},
       {kPack,
        PackTensors(),
        0,
        {"m.weight_packed", "I32", "[8,1]", std::string(32, '\0')},
        "tensor m.weight_packed has shape [8, 1]; config.json asks for [8, 2]"},
       {kPack,
        PackTensors(),
        0,
        {"m.weight", "I8", "[8,16]", std::string(128, '\0')},
        "tensor m.weight has dtype I8; Penstock loads I32 for pack-quantized"},
       {kPack,
        PackTensors(),
        1,
        {},
        "tensor m.weight_scale is missing; config.json asks for [8, 2]"},
       {kPack,
        PackTensors(),
        2,
        {"m.weight_shape", "I32", "[2]", Words({16, 8})},
        "tensor m.weight_shape says [16, 8]; config.json asks for [8, 16]"}});
}

TEST(BadFormats, OtherTensorsAreNamedWithWhatTheyMustBe) {
  const std::string four(4, '\0');
  std::string other_shape = Nf4Tensors()[3].bytes;
  other_shape.replace(other_shape.find("[8, 16]"), 7, "[16, 8]");
  ExpectRefused({{kPack, PackTensors(), 3, {}, "tensor m.weight_zero_point is missing"},
                 {kNf4,
                  Nf4Tensors(),
                  0,
                  {"m.weight", "U8", "[32,1]", std::string(32, '\0')},
                  "tensor m.weight has 32 bytes; config.json asks for 64"},
                 {kNf4,
                  Nf4Tensors(),
                  1,
                  {"m.weight.absmax", "F32", "[1]", four},
                  "tensor m.weight.absmax has shape [1]; config.json asks for [2]"},
                 {kNf4, Nf4Tensors(), 2, {}, "tensor m.weight.quant_map is missing"},
                 {kNf4, Nf4Tensors(), 3, {}, "quant_state.bitsandbytes__nf4 is missing"},
                 {kNf4,
                  Nf4Tensors(),
                  3,
                  {"m.weight.quant_state.bitsandbytes__nf4", "U8", "[1]", "{"},
                  "bitsandbytes__nf4: "},
                 {kNf4,
                  Nf4Tensors(),
                  3,
                  {"m.weight.quant_state.bitsandbytes__nf4", "U8",
                   "[" + std::to_string(other_shape.size()) + "]", other_shape},
                  "`shape` must be [8, 16], as config.json asks for. Given: [16,8]"}});
}

TEST(BadFormats, AnIgnoredModuleMustBePlain) {
  std::vector<Stored> tensors = PackTensors();
  for (Stored& tensor : tensors) tensor.name.replace(0, 1, "a.gate");
  EXPECT_THAT(TensorError(tensors, kPack, "a.gate"),
              HasSubstr("tensor a.gate.weight_packed has dtype I32; Penstock loads F32, BF16 and "
                        "F16 here: config.json says it is not quantised"));
  EXPECT_EQ(
      TensorError({{"a.gate.weight", "F32", "[8,16]", std::string(512, '\0')}}, kPack, "a.gate"),
      "");
}

}  // namespace
}  // namespace penstock::shard
