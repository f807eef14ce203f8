// Embeddings of models that may be cut, and of models that may not; prompts by name.
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RawResponse;

class VectorsTest : public ApiTest {
 protected:
  VectorsTest() {
    engine_.facts.vectors = VectorFacts{};
    engine_.facts.vectors->pooling = "mean";
    engine_.facts.vectors->outputs = 8;
    api_.max_embed_batch_size = 4;
  }

  VectorFacts& facts() { return *engine_.facts.vectors; }
  std::string DimensionsError(std::string_view dimensions) {
    const RawResponse response =
        Post("/v1/embeddings", R"({"input":"a","dimensions":)" + std::string(dimensions) + "}");
    EXPECT_EQ(response.status, 400) << response.body;
    EXPECT_THAT(response.body, HasSubstr(R"("param":"dimensions")"));
    return response.body;
  }
  // The texts that the engine got.
  std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const EmbedInput& input : engine_.embed_job.inputs) {
      texts.push_back(std::get<std::string>(input.text));
    }
    return texts;
  }
};

TEST_F(VectorsTest, AModelThatWasNotTrainedForItIsNotCut) {
  const std::string error = DimensionsError("2");
  EXPECT_THAT(error, HasSubstr("`dimensions` must be 8, since this model was not trained"));
  EXPECT_THAT(error, HasSubstr("2"));
  EXPECT_EQ(Post("/embed", R"({"inputs":"a","dimensions":2})").status, 400);
  EXPECT_EQ(Post("/v1/embeddings", R"({"input":"a","dimensions":8})").status, 200);
}

TEST_F(VectorsTest, AMatryoshkaModelIsCutToAUnitVector) {
  facts().any_size = true;
  EXPECT_THAT(Post("/v1/embeddings", R"({"input":"a","dimensions":2})").body,
              HasSubstr(R"("embedding":[0.6,0.8])"));
  EXPECT_THAT(DimensionsError("9"), HasSubstr("from 1 to 8"));
  EXPECT_THAT(DimensionsError("0"), HasSubstr("from 1 to 8"));
}

TEST_F(VectorsTest, OnlyListedSizesAreAllowed) {
  facts().sizes = {2, 4};
  facts().any_size = true;
  EXPECT_EQ(Post("/v1/embeddings", R"({"input":"a","dimensions":4})").status, 200);
  EXPECT_THAT(DimensionsError("3"), HasSubstr("8 or one of 2, 4"));
}

TEST_F(VectorsTest, APromptStandsBeforeEachText) {
  facts().prompts = {{"query", "Query: "}, {"passage", "Passage: "}};
  EXPECT_EQ(Post("/v1/embeddings", R"({"input":["a","b"],"prompt_name":"query"})").status, 200);
  EXPECT_THAT(Texts(), ElementsAre("Query: a", "Query: b"));
  EXPECT_EQ(Post("/embed", R"({"inputs":"a","prompt_name":"passage"})").status, 200);
  EXPECT_THAT(Texts(), ElementsAre("Passage: a"));
  EXPECT_EQ(Post("/embed", R"({"inputs":"a"})").status, 200);
  EXPECT_THAT(Texts(), ElementsAre("a"));
}

TEST_F(VectorsTest, TheDefaultPromptIsThatOfRequestsWithoutAName) {
  facts().prompts = {{"query", "Query: "}, {"", "Empty: "}};
  facts().default_prompt = "query";
  EXPECT_EQ(Post("/v1/embeddings", R"({"input":"a"})").status, 200);
  EXPECT_THAT(Texts(), ElementsAre("Query: a"));
  EXPECT_EQ(Post("/v1/embeddings", R"({"input":[1,2]})").status, 200);
}

TEST_F(VectorsTest, AnUnknownPromptIsRefusedWithTheKnownNames) {
  EXPECT_THAT(Post("/embed", R"({"inputs":"a","prompt_name":"query"})").body,
              HasSubstr("this model has no prompts"));
  facts().prompts = {{"passage", "Passage: "}, {"query", "Query: "}};
  const RawResponse response = Post("/v1/embeddings", R"({"input":"a","prompt_name":"title"})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("one of passage, query"));
  EXPECT_THAT(response.body, HasSubstr("title"));
  EXPECT_THAT(Post("/v1/embeddings", R"({"input":[1],"prompt_name":"query"})").body,
              HasSubstr("token ids"));
}

TEST_F(VectorsTest, InfoNamesTheTask) {
  EXPECT_THAT(Get("/info").body, HasSubstr(R"("task":"embed","has_chat_template":true)"));
}

TEST_F(VectorsTest, InfoNamesTheTaskOfAClassifier) {
  facts().classifies = true;
  engine_.facts.has_chat_template = false;
  EXPECT_THAT(Get("/info").body, HasSubstr(R"("task":"classify","has_chat_template":false)"));
}

}  // namespace
}  // namespace penstock::router
