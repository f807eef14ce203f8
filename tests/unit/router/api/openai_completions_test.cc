// What evaluation needs of completions: echoed prompts, log-likelihoods, several choices.
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using ::testing::HasSubstr;
using testing::RawResponse;

class OpenAiCompletionsTest : public ApiTest {
 protected:
  // The prompt "<s>ab" of three tokens, and the output of Events.
  void AnswerWithPrompt(const std::vector<std::string>& texts, FinishReason reason) {
    engine_.script = [texts, reason](const GenerationRequest&) {
      auto events = Events(texts, reason, 0, false);
      auto& start = std::get<GenerationStart>(events[0]);
      start.prompt = {{9, "<s>", {}, true}, {5, "a", -1.5f, false}, {6, "b", -0.5f, false}};
      start.prompt_alternatives = {
          {}, {3, {{7, "c", -0.25f, false}}}, {1, {{6, "b", -0.5f, false}}}};
      return events;
    };
  }
  value Complete(const std::string& more, const std::string& prompt = R"("ab")") {
    const RawResponse response =
        Post("/v1/completions", R"({"prompt":)" + prompt + "," + more + "}");
    EXPECT_EQ(response.status, 200) << response.body;
    return boost::json::parse(response.body);
  }
  static std::string Json(const value& v) { return boost::json::serialize(v); }
};

// One entry for each token of the prompt and one for the generated one, also if that is EOS; the
// echoed token is among the alternatives.
TEST_F(OpenAiCompletionsTest, EchoGivesTheLogLikelihoodsOfThePrompt) {
  AnswerWithPrompt({"<eos>"}, FinishReason::kEos);
  const value body = Complete(R"("echo":true,"logprobs":1,"max_tokens":1,"temperature":0)");
  const GenerationRequest request = engine_.WaitForCall()->request;
  EXPECT_TRUE(request.logprobs.prompt_logprobs);
  EXPECT_EQ(request.logprobs.prompt_top_n, 1u);
  const value& choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("text"), "ab");
  const value& logprobs = choice.at("logprobs");
  EXPECT_EQ(Json(logprobs.at("tokens")), R"(["<s>","a","b","<eos>"])");
  EXPECT_EQ(Json(logprobs.at("token_logprobs")), "[null,-1.5E0,-5E-1,-2.5E-1]");
  EXPECT_EQ(Json(logprobs.at("top_logprobs")),
            R"([null,{"c":-2.5E-1,"a":-1.5E0},{"b":-5E-1},{"<eos>":-2.5E-1}])");
  EXPECT_EQ(Json(logprobs.at("text_offset")), "[0,0,1,2]");
}

TEST_F(OpenAiCompletionsTest, NothingIsGeneratedWithMaxTokensZero) {
  AnswerWithPrompt({"x"}, FinishReason::kLength);
  const value body = Complete(R"("echo":true,"logprobs":0,"max_tokens":0)");
  EXPECT_EQ(engine_.WaitForCall()->request.max_new_tokens, 1u);
  const value& choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("text"), "ab");
  EXPECT_EQ(choice.at("logprobs").at("tokens").as_array().size(), 3u);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 0);
}

// The token itself always counts among the alternatives.
TEST_F(OpenAiCompletionsTest, WithNoAlternativesTheTokenItselfIsLeft) {
  AnswerWithPrompt({"x", "y"}, FinishReason::kLength);
  const value body = Complete(R"("logprobs":0)");
  EXPECT_EQ(Json(body.at("choices").at(0).at("logprobs").at("top_logprobs")),
            R"([{"x":-2.5E-1},{"y":-5E-1}])");
}

TEST_F(OpenAiCompletionsTest, APromptOfTokensIsEchoedAsItsText) {
  AnswerWithPrompt({"x"}, FinishReason::kLength);
  const value body = Complete(R"("echo":true)", "[[9,5,6],[9,5,6]]");
  EXPECT_EQ(body.at("choices").at(1).at("text"), "abx");
  EXPECT_TRUE(engine_.WaitForCall()->request.show_prompt);
  EXPECT_FALSE(engine_.WaitForCall()->request.logprobs.prompt_logprobs);
  const RawResponse stream =
      Post("/v1/completions", R"({"prompt":[9,5,6],"echo":true,"stream":true})");
  EXPECT_THAT(stream.body, HasSubstr(R"("text":"ab")"));
}

// vLLM's shape: null, then the token's own entry and the alternatives.
TEST_F(OpenAiCompletionsTest, PromptLogprobsAreInVllmsShape) {
  AnswerWithPrompt({"x"}, FinishReason::kLength);
  const std::string expected = R"([null,{"5":{"logprob":-1.5E0,"rank":3,"decoded_token":"a"},)"
                               R"("7":{"logprob":-2.5E-1,"rank":1,"decoded_token":"c"}},)"
                               R"({"6":{"logprob":-5E-1,"rank":1,"decoded_token":"b"}}])";
  const value body = Complete(R"("prompt_logprobs":1,"n":2)");
  EXPECT_EQ(Json(body.at("choices").at(1).at("prompt_logprobs")), expected);
  // The second choice does not compute the prompt again.
  EXPECT_TRUE(engine_.WaitForCall(0)->request.logprobs.prompt_logprobs);
  EXPECT_FALSE(engine_.WaitForCall(1)->request.logprobs.prompt_logprobs);
  const RawResponse chat =
      Post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"hi"}],"prompt_logprobs":1})");
  EXPECT_EQ(Json(boost::json::parse(chat.body).at("prompt_logprobs")), expected);
}

TEST_F(OpenAiCompletionsTest, BestOfReturnsTheChoiceWithTheLargestMean) {
  engine_.script = [](const GenerationRequest& request) {
    // The first choice has one token of -0.25; the second two of -0.125.
    auto events = Events({"first"}, FinishReason::kEos, 0, true);
    if (request.sampling.sibling == 0) return events;
    events = Events({"sec", "ond"}, FinishReason::kEos, 0, true);
    for (std::size_t i : {1u, 2u}) {
      std::get<GenerationToken>(events[i]).token.logprob = -0.125f;
    }
    return events;
  };
  const value body = Complete(R"("best_of":2)");
  ASSERT_EQ(body.at("choices").as_array().size(), 1u);
  EXPECT_EQ(body.at("choices").at(0).at("text"), "second");
  EXPECT_EQ(body.at("choices").at(0).at("index"), 0);
  EXPECT_TRUE(body.at("choices").at(0).at("logprobs").is_null());
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 3);  // of all
}

TEST_F(OpenAiCompletionsTest, SamplingKeysOfOtherServersAreTaken) {
  AnswerWithPrompt({"x"}, FinishReason::kLength);
  Complete(R"("typical_p":0.5,"top_n_sigma":1.5,"bad_words":["ab"],
              "include_stop_str_in_output":true)");
  const GenerationRequest request = engine_.WaitForCall()->request;
  EXPECT_EQ(request.sampling.typical_p, 0.5f);
  EXPECT_EQ(request.sampling.top_n_sigma, 1.5f);
  EXPECT_EQ(request.bad_words, std::vector<std::string>{"ab"});
  EXPECT_EQ(request.stop_rule, StopRule::kShow);
}

TEST_F(OpenAiCompletionsTest, WrongValuesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"prompt":"a","n":2,"best_of":1})",
       "`best_of` must be from `n`, 2, to 2 (--max-best-of). Given: 1"},
      {R"({"prompt":"a","best_of":3})",
       "`best_of` must be from `n`, 1, to 2 (--max-best-of). Given: 3"},
      {R"({"prompt":"a","best_of":2,"stream":true})",
       "`best_of` above `n` is not supported in a stream"},
      {R"({"prompt":"a","prompt_logprobs":21})",
       "`prompt_logprobs` must be from 0 to 20. Given: 21"},
      {R"({"prompt":"a","prompt_logprobs":1,"stream":true})",
       "`prompt_logprobs` are not supported in a stream"},
      {R"({"prompt":"a","typical_p":0})", "`typical_p` must be above 0 and at most 1. Given: 0.0"},
      {R"({"prompt":"a","top_n_sigma":-2})",
       "`top_n_sigma` must be from -1.0 to 1000.0. Given: -2.0"},
      {R"({"prompt":"a","bad_words":[" "]})",
       "`bad_words` must be strings that are not blank. Given: string \" \""},
  };
  for (const auto& [body, message] : cases) {
    const RawResponse response = Post("/v1/completions", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(boost::json::parse(response.body).at("error").at("message"), value(message)) << body;
  }
}

TEST_F(OpenAiCompletionsTest, AChatTemplateOfARequestNeedsTheOption) {
  const std::string body =
      R"({"messages":[{"role":"user","content":"hi"}],"chat_template":"{{ messages[0].content }}"})";
  const RawResponse refused = Post("/v1/chat/completions", body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("trust-request-chat-template"));
}

TEST_F(OpenAiCompletionsTest, AChatTemplateOfARequestDecidesTheRolesAndIsNamedInErrors) {
  api_.trust_request_chat_template = true;
  AnswerWith({"a"}, FinishReason::kLength);
  const auto post = [this](const std::string& source) {
    return Post(
        "/v1/chat/completions",
        R"({"messages":[{"role":"developer","content":"hi"}],"chat_template":")" + source + "\"}");
  };
  const auto sent = [this](std::size_t call) {
    return std::get<ChatInput>(engine_.WaitForCall(call)->request.prompt);
  };
  EXPECT_EQ(post("{{ messages[0].content }}").status, 200);
  EXPECT_EQ(sent(0).template_source, "{{ messages[0].content }}");
  EXPECT_THAT(sent(0).messages_json, HasSubstr("system"));
  EXPECT_EQ(post("{{ developer }}").status, 200);
  EXPECT_THAT(sent(1).messages_json, HasSubstr("developer"));
  FailWith({ErrorKind::kTemplate, "syntax error: no (in <string>:1)", "chat_template", {}});
  const value error = boost::json::parse(post("{% if %}").body).at("error");
  EXPECT_EQ(error.at("message"), "`chat_template` is not valid: syntax error: no (in <string>:1)");
  EXPECT_EQ(error.at("param"), "chat_template");
}

}  // namespace
}  // namespace penstock::router
