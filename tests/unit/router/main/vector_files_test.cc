#include "router/main/vector_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/temp_folder.h"

namespace penstock::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

VectorFacts Embedder() {
  VectorFacts vectors;
  vectors.outputs = 64;
  return vectors;
}

TEST(VectorFiles, SizesAreThoseOfTheConfig) {
  VectorFacts vectors = Embedder();
  EXPECT_TRUE(AddSizes("{}", vectors).ok());
  EXPECT_FALSE(vectors.any_size);
  EXPECT_TRUE(AddSizes(R"({"is_matryoshka": true})", vectors).ok());
  EXPECT_TRUE(vectors.any_size);
  EXPECT_TRUE(AddSizes(R"({"matryoshka_dimensions": [16, 32]})", vectors).ok());
  EXPECT_THAT(vectors.sizes, ElementsAre(16, 32));
}

TEST(VectorFiles, ASizeAboveTheOutputsIsAnError) {
  VectorFacts vectors = Embedder();
  const absl::Status status = AddSizes(R"({"matryoshka_dimensions": [65]})", vectors);
  EXPECT_THAT(status.message(), HasSubstr("from 1 to 64, not 65"));
}

TEST(VectorFiles, PromptsAndTheNameOfTheDefault) {
  VectorFacts vectors = Embedder();
  ASSERT_TRUE(
      AddPrompts(R"({"prompts": {"query": "Q: "}, "default_prompt_name": "query"})", vectors).ok());
  EXPECT_EQ(vectors.prompts.at("query"), "Q: ");
  EXPECT_EQ(vectors.default_prompt, "query");
  VectorFacts other = Embedder();
  EXPECT_THAT(AddPrompts(R"({"default_prompt_name": "title"})", other).message(),
              HasSubstr("title"));
}

TEST(VectorFiles, TheFilesOfAFolder) {
  const TempFolder folder;
  VectorFacts vectors = Embedder();
  EXPECT_TRUE(AddVectorFiles(folder.path(), vectors).ok());
  EXPECT_EQ(vectors, Embedder());
  folder.Write("config.json", R"({"is_matryoshka": true})");
  folder.Write("config_sentence_transformers.json",
               R"({"prompts": {"query": "Q: "}, "default_prompt_name": null})");
  EXPECT_TRUE(AddVectorFiles(folder.path(), vectors).ok());
  EXPECT_TRUE(vectors.any_size && vectors.prompts.contains("query"));
  folder.Write("config_sentence_transformers.json", "[");
  EXPECT_THAT(AddVectorFiles(folder.path(), vectors).message(),
              HasSubstr("config_sentence_transformers.json"));
}

}  // namespace
}  // namespace penstock::router
