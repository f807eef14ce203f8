// OpenAI's errors name OpenAI's keys, each of OpenAI's keys is known, and bad content is named.
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawResponse;

class OpenAiErrorsTest : public ApiTest {
 protected:
  value Error(std::string_view path, std::string_view body) {
    return boost::json::parse(Post(path, body).body).at("error");
  }
  value ChatError(std::string_view more) { return Error("/v1/chat/completions", Chat(more)); }
  static std::string Chat(std::string_view more) {
    return R"({"messages":[{"role":"user","content":"a"}],)" + std::string(more) + "}";
  }
};

TEST_F(OpenAiErrorsTest, AWrongGrammarIsOneOfResponseFormat) {
  engine_.facts.has_grammar = true;
  FailWith({ErrorKind::kValidation, "grammar is not valid: unclosed group", "grammar", {}});
  const value error = ChatError(R"("response_format":{"type":"json_object"})");
  EXPECT_EQ(error.at("param"), "response_format");
  EXPECT_EQ(error.at("message"), "`response_format` is not valid: unclosed group");
  EXPECT_THAT(Post("/generate", R"({"inputs":"a"})").body,
              HasSubstr("Input validation error: grammar is not valid: unclosed group"));
}

TEST_F(OpenAiErrorsTest, TheEnginesErrorsNameTheKeysOfTheRoute) {
  FailWith({ErrorKind::kValidation, "`inputs` cannot be empty", "inputs", {}});
  EXPECT_EQ(ChatError(R"("n":1)").at("message"), "`messages` cannot be empty");
  EXPECT_EQ(ChatError(R"("n":1)").at("param"), "messages");
  const value completion = Error("/v1/completions", R"({"prompt":"a"})");
  EXPECT_EQ(completion.at("message"), "`prompt` cannot be empty");
  EXPECT_EQ(completion.at("param"), "prompt");
  EXPECT_THAT(Post("/inference", R"({"prompt":"a","num_tokens":3})").body,
              HasSubstr("`prompt` cannot be empty"));
  FailWith({ErrorKind::kValidation, "`max_new_tokens` is too small", "max_new_tokens", {}});
  EXPECT_EQ(ChatError(R"("max_completion_tokens":1)").at("message"),
            "`max_completion_tokens` is too small");
  EXPECT_EQ(ChatError(R"("max_tokens":1)").at("param"), "max_tokens");
  EXPECT_THAT(Post("/inference", R"({"prompt":"a","num_tokens":3})").body,
              HasSubstr("`num_tokens` is too small"));
}

TEST_F(OpenAiErrorsTest, AMissingKeyIsTheParameter) {
  EXPECT_EQ(Error("/v1/completions", "{}").at("param"), "prompt");
  EXPECT_EQ(Error("/v1/chat/completions", R"({"messages":[{"content":"a"}]})").at("param"),
            "messages[0].role");
}

TEST_F(OpenAiErrorsTest, MinTokensMustNotBeAboveTheLength) {
  EXPECT_EQ(ChatError(R"("min_tokens":5,"max_tokens":4)").at("message"),
            "`min_tokens` must be at most `max_tokens`, 4. Given: 5");
  EXPECT_EQ(ChatError(R"("min_tokens":5,"max_completion_tokens":4)").at("message"),
            "`min_tokens` must be at most `max_completion_tokens`, 4. Given: 5");
  EXPECT_EQ(Error("/v1/completions", R"({"prompt":"a","min_tokens":17})").at("param"),
            "min_tokens");
}

// Each of OpenAI's keys that has no effect, as the SDKs send them.
constexpr std::string_view kHarmless =
    R"("metadata":{"a":"b"},"prediction":{"type":"content"},)"
    R"("prompt_cache_key":"k","prompt_cache_options":{},"prompt_cache_retention":"24h",)"
    R"("safety_identifier":"s","service_tier":"auto","store":false,)"
    R"("user":"u","verbosity":"low","stream_options":{"include_obfuscation":false},)"
    R"("modalities":["text"],"function_call":"none","functions":[{"name":"f"}])";

TEST_F(OpenAiErrorsTest, KeysWithoutEffectAreAcceptedAndNamed) {
  AnswerWith({"a"}, FinishReason::kLength);
  const auto chat = Post("/v1/chat/completions", Chat(kHarmless));
  EXPECT_EQ(chat.status, 200) << chat.body;
  EXPECT_EQ(chat.headers.at("x-penstock-ignored"),
            "metadata,prediction,prompt_cache_key,prompt_cache_options,prompt_cache_retention,"
            "safety_identifier,service_tier,store,user,verbosity,"
            "stream_options.include_obfuscation");
  EXPECT_THAT(metrics_.Render(), Not(HasSubstr("penstock_unknown_keys_total{")));
  const auto completion = Post("/v1/completions", R"({"prompt":"a","user":"u","usr":1})");
  EXPECT_EQ(completion.headers.at("x-penstock-ignored"), "usr,user");
  // null says nothing.
  EXPECT_EQ(
      Post("/v1/completions", R"({"prompt":"a","user":null})").headers.count("x-penstock-ignored"),
      0U);
}

TEST_F(OpenAiErrorsTest, StrictJsonTakesOpenAisKeysAndRefusesOthers) {
  api_.strict_json = true;
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/v1/chat/completions", Chat(kHarmless)).status, 200);
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":"a","user":"u"})").status, 200);
  const value error = ChatError(R"("usr":"u")");
  EXPECT_EQ(error.at("message"), "`usr` is not a key that this server knows. Nearest: `user`");
}

TEST_F(OpenAiErrorsTest, UnknownKeysBelowTheTopAreNamedByTheirPath) {
  engine_.facts.has_grammar = true;
  AnswerWith({"a"}, FinishReason::kLength);
  const std::string format = R"("response_format":{"typ":1,"type":"json_schema","json_schema":)"
                             R"({"name":"n","strickt":true,"strict":true,"schema":{"unknown":1}}},)"
                             R"("stream_options":{"include_usag":true})";
  EXPECT_EQ(Post("/v1/chat/completions", Chat(format)).headers.at("x-penstock-ignored"),
            "response_format.typ,response_format.json_schema.strickt,stream_options.include_usag");
}

TEST_F(OpenAiErrorsTest, StrictJsonRefusesUnknownKeysBelowTheTop) {
  api_.strict_json = true;
  const value error = ChatError(
      R"("response_format":{"type":"json_schema","json_schema":{"strickt":true,"schema":{}}})");
  EXPECT_EQ(error.at("message"),
            "`response_format.json_schema.strickt` is not a key that this server knows. Nearest: "
            "`strict`");
}

TEST_F(OpenAiErrorsTest, TheNearestKeyIsTheSameInOtherLettersOrMeansTheSame) {
  api_.strict_json = true;
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"top_K", "top_k"}, {"stop_sequences", "stop"}, {"max_completion_tokens", "max_tokens"}};
  for (const auto& [given, nearest] : cases) {
    const std::string body = R"({"prompt":"a",")" + std::string(given) + R"(":1})";
    EXPECT_EQ(Error("/v1/completions", body).at("message"),
              value("`" + std::string(given) + "` is not a key that this server knows. Nearest: `" +
                    std::string(nearest) + "`"));
  }
}

// llama.cpp's form.
TEST_F(OpenAiErrorsTest, AJsonObjectMayHaveASchema) {
  engine_.facts.has_grammar = true;
  AnswerWith({"a"}, FinishReason::kLength);
  Post("/v1/chat/completions",
       Chat(R"("response_format":{"type":"json_object","schema":{"type":"array"}})"));
  EXPECT_EQ(engine_.WaitForCall()->request.grammar.source, R"(schema {"type":"array"})");
}

TEST_F(OpenAiErrorsTest, ATooLongPromptNamesTheContextAndTheLongestPrompt) {
  GenerationError error{ErrorKind::kValidation, "TGI's text", "inputs", {}};
  error.length = {.prompt_tokens = 9765, .limit = 2047, .context = 2048, .at_least = true};
  FailWith(error);
  EXPECT_EQ(ChatError(R"("n":1)").at("message"),
            "This model's maximum context length is 2048 tokens. However, your prompt has at least "
            "9765 tokens. A prompt may have at most 2047.");
}

TEST_F(OpenAiErrorsTest, ARefusalOfTheTemplateIsNoSyntaxError) {
  FailWith(
      {ErrorKind::kTemplate, "syntax error: roles must alternate (in <string>:1)", "messages", {}});
  EXPECT_EQ(ChatError(R"("n":1)").at("message"),
            "the chat template refuses the messages: roles must alternate");
}

// Python's SDK shows no other form than OpenAI's.
TEST_F(OpenAiErrorsTest, AWrongBaseUrlGetsAHintInOpenAisForm) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"/chat/completions", "/v1/chat/completions"},
      {"/completions", "/v1/completions"},
      {"/v1/completion", "/v1/completions"},
      {"/v1/chat/completions/chat/completions", "/v1/chat/completions"},
      {"/v1/v1/chat/completions", "/v1/chat/completions"},
      {"/api/v1/completions", "/v1/completions"},
  };
  for (const auto& [path, meant] : cases) {
    EXPECT_EQ(Error(path, "{}").at("message"), value("no such route: POST " + std::string(path) +
                                                     ". Did you mean " + std::string(meant) + "?"));
  }
  EXPECT_EQ(boost::json::parse(Get("/models").body).at("error").at("code"), "not_found");
}

TEST_F(OpenAiErrorsTest, KeysThatAskForAnotherAnswerAreRefused) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"("audio":{"voice":"alloy"})", "`audio` is not supported: answers are text"},
      {R"("modalities":["text","audio"])",
       "`modalities` must be [\"text\"]. Given: string \"audio\""},
      {R"("moderation":{})", "`moderation` is not supported"},
      {R"("web_search_options":{})", "`web_search_options` are not supported"},
      {R"("functions":[{"name":"f"}])", "`functions` are not supported"},
  };
  for (const auto& [more, message] : cases) {
    EXPECT_EQ(ChatError(more).at("message"), value(message)) << more;
  }
  EXPECT_EQ(engine_.calls(), 0U);
}

// Templates print null as text.
TEST_F(OpenAiErrorsTest, AnAssistantWithoutContentAndCallsHasAnEmptyText) {
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/v1/chat/completions",
                 R"({"messages":[{"content":null,"role":"assistant"},)"
                 R"({"role":"assistant"},)"
                 R"({"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}]})")
                .status,
            200);
  EXPECT_EQ(std::get<ChatInput>(engine_.WaitForCall()->request.prompt).messages_json,
            R"([{"content":"","role":"assistant"},{"role":"assistant","content":""},)"
            R"({"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}])");
}

TEST_F(OpenAiErrorsTest, ADeveloperIsTheSystemForATemplateThatDoesNotNameTheRole) {
  AnswerWith({"a"}, FinishReason::kLength);
  const auto sent = [this](std::size_t call) {
    Post("/v1/chat/completions", R"({"messages":[{"role":"developer","content":"developer"},)"
                                 R"({"content":"b","role":"developer"}]})");
    return std::get<ChatInput>(engine_.WaitForCall(call)->request.prompt).messages_json;
  };
  EXPECT_EQ(sent(0),
            R"([{"role":"system","content":"developer"},{"content":"b","role":"system"}])");
  engine_.facts.template_has_developer = true;
  EXPECT_EQ(sent(1),
            R"([{"role":"developer","content":"developer"},{"content":"b","role":"developer"}])");
}

TEST_F(OpenAiErrorsTest, AnswersToTheSameRequestIdHaveDifferentIds) {
  AnswerWith({"a"}, FinishReason::kLength);
  const auto id = [this] {
    const RawResponse response =
        Post("/v1/chat/completions", Chat(R"("n":1)"), "X-Request-Id: same\r\n");
    EXPECT_EQ(response.headers.at("x-request-id"), "same");
    return boost::json::parse(response.body).at("id");
  };
  EXPECT_NE(id(), id());
}

// OpenAI's code tells the causes of a 503 apart.
TEST_F(OpenAiErrorsTest, ACodeNamesMissingShardsAndABeginningDrain) {
  FailWith({ErrorKind::kUnavailable, "shard-0 was lost", "", {}});
  for (const auto& [path, body] :
       {std::pair("/v1/completions", R"({"prompt":"a"})"),
        std::pair("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})")}) {
    const RawResponse response = Post(path, body);
    EXPECT_EQ(response.status, 503) << path;
    EXPECT_THAT(response.body, HasSubstr(R"("message":"shard-0 was lost")")) << path;
    EXPECT_THAT(response.body, HasSubstr(R"("code":"no_ready_shards")")) << path;
  }
  FailWith({ErrorKind::kDraining, "the server is shutting down", "", {}});
  EXPECT_THAT(Post("/v1/completions", R"({"prompt":"a"})").body,
              HasSubstr(R"("code":"server_draining")"));
}

TEST_F(OpenAiErrorsTest, AFullBodyStoreIsNotReportedAsMissingShards) {
  http_.body_memory = 10;
  const RawResponse response = Post("/v1/completions", R"({"prompt":"a"})");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.at("retry-after"), "1");
  EXPECT_THAT(response.body, HasSubstr("the server holds too many bodies"));
  EXPECT_THAT(response.body, HasSubstr(R"("code":"server_overloaded")"));
}

using TgiProfileTest = OpenAiErrorsTest;

TEST_F(TgiProfileTest, StrictJsonTakesOpenAisKeysThatHaveNoEffect) {
  dialects_.tgi_only = true;
  api_.strict_json = true;
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/v1/chat/completions", Chat(R"("user":"u","store":true)")).status, 200);
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":"a","user":"u"})").status, 200);
  EXPECT_EQ(Post("/v1/chat/completions", Chat(R"("usr":"u")")).status, 400);
}

}  // namespace
}  // namespace penstock::router
