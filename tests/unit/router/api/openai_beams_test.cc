// use_beam_search on OpenAI's routes: what the engine is asked for, and what is refused.
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using testing::RawResponse;

class OpenAiBeamsTest : public ApiTest {
 protected:
  OpenAiBeamsTest() { api_.max_best_of = 8; }
};

TEST_F(OpenAiBeamsTest, ASearchAnswersWithItsBestTexts) {
  AnswerWith({"a", "b"}, FinishReason::kLength);
  const RawResponse response =
      Post("/v1/completions",
           R"({"prompt":"p","use_beam_search":true,"n":2,"best_of":4,"length_penalty":0.5,)"
           R"("early_stopping":"never","temperature":1})");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto beams = engine_.WaitForCall()->request.beams;
  ASSERT_TRUE(beams);
  EXPECT_EQ(beams->width, 4u);
  EXPECT_EQ(beams->results, 2u);
  EXPECT_EQ(beams->length_penalty, 0.5f);
  EXPECT_EQ(beams->early_stopping, EarlyStopping::kNever);
  EXPECT_FALSE(engine_.WaitForCall()->request.sampling.do_sample);
  const auto body = boost::json::parse(response.body);
  EXPECT_EQ(body.at("choices").as_array().size(), 2u);
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 4);
}

TEST_F(OpenAiBeamsTest, EachPromptHasItsOwnSearch) {
  AnswerWith({"a"}, FinishReason::kLength);
  const RawResponse response =
      Post("/v1/completions", R"({"prompt":["p","q"],"use_beam_search":true,"n":2})");
  EXPECT_EQ(boost::json::parse(response.body).at("choices").as_array().size(), 4u);
  EXPECT_EQ(std::get<std::string>(engine_.WaitForCall(0)->request.prompt), "p");
  EXPECT_EQ(std::get<std::string>(engine_.WaitForCall(2)->request.prompt), "q");
}

TEST_F(OpenAiBeamsTest, AChatMaySearchToo) {
  AnswerWith({"a"}, FinishReason::kLength);
  const RawResponse response =
      Post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"x"}],"use_beam_search":true,"best_of":3})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(engine_.WaitForCall()->request.beams->width, 3u);
  EXPECT_EQ(boost::json::parse(response.body).at("choices").as_array().size(), 1u);
}

// A search of four texts is four generations at a time.
TEST_F(OpenAiBeamsTest, ASearchNeedsAPermitForEachBeam) {
  api_.max_concurrent_requests = 3;
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":"p","use_beam_search":true,"best_of":4})").status,
            429);
}

TEST_F(OpenAiBeamsTest, WhatASearchCannotDoIsRefused) {
  for (const auto& [more, text] :
       {std::pair(R"("stream":true)", "`stream` is not supported with `use_beam_search`"),
        std::pair(R"("stop":"x")", "`stop` is not supported with `use_beam_search`"),
        std::pair(R"("frequency_penalty":1)", "`frequency_penalty` is not supported with"),
        std::pair(R"("guided_regex":"a+")", "`guided_regex` is not supported with"),
        std::pair(R"("length_penalty":11)", "`length_penalty` must be from -10.0 to 10.0"),
        std::pair(R"("early_stopping":"soon")", "`early_stopping` must be a boolean or \\\"never"),
        std::pair(R"("n":9)", "`n` must be from 1 to 8 (--max-best-of). Given: 9")}) {
    const RawResponse response = Post(
        "/v1/completions", R"({"prompt":"p","use_beam_search":true,)" + std::string(more) + "}");
    EXPECT_EQ(response.status, 400) << more;
    EXPECT_THAT(response.body, HasSubstr(text));
  }
  EXPECT_EQ(engine_.calls(), 0u);
  EXPECT_THAT(
      Post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"best_of":2})")
          .body,
      HasSubstr("`best_of` of a chat needs `use_beam_search`"));
}

TEST_F(OpenAiBeamsTest, KeysOfASearchNeedOne) {
  AnswerWith({"a"}, FinishReason::kLength);
  for (const auto& [more, key] :
       {std::pair(R"("length_penalty":1.5)", "length_penalty"),
        std::pair(R"("length_penalty":0,"use_beam_search":false)", "length_penalty"),
        std::pair(R"("early_stopping":true)", "early_stopping"),
        std::pair(R"("early_stopping":"never")", "early_stopping")}) {
    const RawResponse response =
        Post("/v1/completions", R"({"prompt":"p",)" + std::string(more) + "}");
    EXPECT_EQ(response.status, 400) << more;
    const auto error = boost::json::parse(response.body).at("error");
    EXPECT_EQ(error.at("param"), boost::json::value(key));
    EXPECT_EQ(error.at("message"),
              boost::json::value("`" + std::string(key) + "` needs `use_beam_search`"));
  }
  // Clients of vLLM send the defaults.
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":"p","length_penalty":1.0,"early_stopping":false})")
                .status,
            200);
}

}  // namespace
}  // namespace penstock::router
