#include "tools/make-model/make_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/status.h"
#include "shard/model/model.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/make-model/random_values.h"
#include "tools/make-model/shape.h"
#include "tools/make-model/tokenizer_files.h"

namespace penstock::make_model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

ModelOptions Tiny(const TempFolder& folder) {
  ModelOptions config;
  config.output = folder / "model";
  return config;
}

shard::Model OpenModel(const ModelOptions& config) {
  auto model = shard::Model::Open({config.output, std::nullopt, shard::Device(), 0, 1});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? std::move(*model) : shard::Model();
}

TEST(MakeModel, TheSameSeedGivesTheSameBytes) {
  TempFolder folder;
  ModelOptions config = Tiny(folder);
  config.overwrite = true;
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  const std::string first = ReadAll(config.output + "/model.safetensors");
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  EXPECT_EQ(ReadAll(config.output + "/model.safetensors"), first);
  config.seed = 1;
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  EXPECT_NE(ReadAll(config.output + "/model.safetensors"), first);
}

TEST(MakeModel, SeveralFilesHoldTheSameTensors) {
  TempFolder folder;
  ModelOptions config = Tiny(folder);
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  const shard::Model whole = OpenModel(config);
  config.output = folder / "parts";
  config.max_file_bytes = 64 << 10;
  const auto result = MakeModel(config, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->files, 2u);
  const shard::Model parts = OpenModel(config);
  ASSERT_EQ(parts.checkpoint.tensors().size(), whole.checkpoint.tensors().size());
  for (const auto& tensor : whole.checkpoint.tensors()) {
    const auto* other = parts.checkpoint.Find(tensor.info->name);
    ASSERT_NE(other, nullptr);
    std::string a(tensor.info->bytes, '\0'), b(tensor.info->bytes, '\0');
    ASSERT_TRUE(whole.checkpoint.Read(tensor, 0, a.size(), a.data()).ok());
    ASSERT_TRUE(parts.checkpoint.Read(*other, 0, b.size(), b.data()).ok());
    EXPECT_EQ(a, b) << tensor.info->name;
  }
  for (const auto& entry : std::filesystem::directory_iterator(config.output)) {
    if (entry.path().extension() != ".safetensors") continue;
    EXPECT_LT(entry.file_size(), config.max_file_bytes + 4096);
  }
}

TEST(MakeModel, ProgressEndsAtTheWhole) {
  TempFolder folder;
  std::uint64_t last = 0;
  const auto result = MakeModel(Tiny(folder), [&last](std::uint64_t done, std::uint64_t total) {
    EXPECT_GT(done, last);
    EXPECT_LE(done, total);
    last = done;
  });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(last, result->bytes);
  EXPECT_EQ(result->bytes, result->parameters * 2);
}

TEST(MakeModel, ReplacesAModelOnlyOnRequest) {
  TempFolder folder;
  ModelOptions config = Tiny(folder);
  config.max_file_bytes = 64 << 10;
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  EXPECT_THAT(Message(MakeModel(config, nullptr).status()), HasSubstr("--overwrite"));
  config.overwrite = true;
  config.max_file_bytes = 0;
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  OpenModel(config);  // not mixed with the index of the earlier model
}

TEST(MakeModel, WindowsGoIntoTheConfig) {
  TempFolder folder;
  ModelOptions config = Tiny(folder);
  config.sliding_window = 20;
  EXPECT_THAT(Message(MakeModel(config, nullptr).status()), HasSubstr("unset for llama"));
  for (const char* type : {"mistral", "qwen2", "qwen3"}) {
    config.output = folder / type;
    config.type = type;
    ASSERT_TRUE(MakeModel(config, nullptr).ok());
    EXPECT_THAT(OpenModel(config).spec.windows, ElementsAre(20, 20));
  }
}

TEST(MakeModel, GptNeoxHasNeitherWindowNorGguf) {
  TempFolder folder;
  ModelOptions config = Tiny(folder);
  config.type = "gpt_neox";
  config.sliding_window = 20;
  EXPECT_THAT(Message(MakeModel(config, nullptr).status()), HasSubstr("unset for gpt_neox"));
  config.sliding_window = 0;
  config.gguf = folder / "x.gguf";
  EXPECT_THAT(Message(MakeModel(config, nullptr).status()), HasSubstr("unset for gpt_neox"));
  config.gguf.clear();
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  EXPECT_EQ(OpenModel(config).spec.rope.dim, 2u);  // a quarter of 8
}

// The shapes of the published models, by their parameter counts.
TEST(Recipes, HaveThePublishedParameterCounts) {
  const auto parameters = [](const char* shape, const char* type) {
    std::uint64_t sum = 0;
    for (const TensorRecipe& recipe :
         Recipes(ShapeNamed(shape), KindNamed(type), DType::kBFloat16)) {
      sum += recipe.tensor.Bytes() / 2;
    }
    return sum;
  };
  EXPECT_EQ(parameters("135m", "llama"), 134515008u);
  EXPECT_EQ(parameters("0.5b", "qwen2"), 494032768u);
  EXPECT_EQ(parameters("1.1b", "llama"), 1100048384u);
  EXPECT_EQ(parameters("8b", "llama"), 8030261248u);
}

TEST(RandomValues, AreNearlyNormalAndIndependentOfTheirNeighbours) {
  std::vector<float> values(400000);
  RandomValues(5, "a", 2.0f, 3.0f, DType::kFloat32).Fill(std::as_writable_bytes(std::span(values)));
  double mean = 0, square = 0, product = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = (values[i] - 2.0) / 3.0;
    mean += x;
    square += x * x;
    if (i > 0) product += x * (values[i - 1] - 2.0) / 3.0;
  }
  const double count = static_cast<double>(values.size());
  EXPECT_NEAR(mean / count, 0.0, 0.01);
  EXPECT_NEAR(square / count, 1.0, 0.02);
  EXPECT_NEAR(product / count, 0.0, 0.01);
  std::vector<float> other(values.size());
  RandomValues(5, "b", 2.0f, 3.0f, DType::kFloat32).Fill(std::as_writable_bytes(std::span(other)));
  EXPECT_NE(values, other);
}

TEST(Tokenizer, MadeHereHasATokenForEveryByte) {
  TempFolder folder;
  const auto info = WriteByteTokenizer(folder.path(), 320);
  ASSERT_TRUE(info.ok());
  const auto root = boost::json::parse(ReadAll(folder / "tokenizer.json"));
  const auto& vocab = root.at("model").at("vocab").as_object();
  EXPECT_EQ(vocab.size(), 320u);
  EXPECT_EQ(vocab.at("H").as_int64(), 3 + 'H');
  EXPECT_EQ(vocab.at("\u0120").as_int64(), 3 + ' ');  // as GPT-2 spells a space
  EXPECT_EQ(vocab.at("\u010a").as_int64(), 3 + '\n');
  EXPECT_EQ(vocab.at("\u00ff").as_int64(), 3 + 0xff);
  EXPECT_EQ(vocab.at("\u0120t319").as_int64(), 319);
  const auto read = ReadTokenizer(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size, 320u);
  EXPECT_EQ(read->bos, 1);
  EXPECT_THAT(read->eos, ElementsAre(2));
}

TEST(Tokenizer, OfAFolderIsCopiedAndSetsTheVocabulary) {
  TempFolder source;
  source.Write("tokenizer.json", R"({"model": {"vocab": {"a": 0, "b": 1}},
      "added_tokens": [{"id": 6, "content": "<end>"}]})");
  source.Write("tokenizer_config.json",
               R"({"bos_token": null, "eos_token": {"content": "<end>"}})");
  source.Write("README.md", "not a tokenizer");
  TempFolder folder;
  ModelOptions config = Tiny(folder);
  config.tokenizer = source.path();
  ASSERT_TRUE(MakeModel(config, nullptr).ok());
  const shard::Model model = OpenModel(config);
  EXPECT_EQ(model.spec.vocabulary, 7u);
  EXPECT_EQ(model.spec.bos_token_id, -1);
  EXPECT_THAT(model.spec.eos_token_ids, ElementsAre(6));
  EXPECT_TRUE(std::filesystem::exists(config.output + "/tokenizer.json"));
  EXPECT_FALSE(std::filesystem::exists(config.output + "/README.md"));
}

TEST(Tokenizer, ABrokenFolderIsNamed) {
  TempFolder folder;
  ModelOptions config = Tiny(folder);
  config.tokenizer = folder / "absent";
  EXPECT_THAT(Message(MakeModel(config, nullptr).status()),
              HasSubstr("absent/tokenizer.json: cannot be read"));
  EXPECT_FALSE(std::filesystem::exists(config.output + "/config.json"));
  folder.Write("tokenizer.json", "[]");
  config.tokenizer = folder.path();
  EXPECT_THAT(Message(MakeModel(config, nullptr).status()), HasSubstr("is not a JSON object"));
}

}  // namespace
}  // namespace penstock::make_model
