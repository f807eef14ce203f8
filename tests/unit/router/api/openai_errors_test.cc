// OpenAI's errors name OpenAI's keys, and each of OpenAI's keys is known.
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using ::testing::HasSubstr;
using ::testing::Not;

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
    R"("metadata":{"a":"b"},"parallel_tool_calls":true,"prediction":{"type":"content"},)"
    R"("prompt_cache_key":"k","prompt_cache_options":{},"prompt_cache_retention":"24h",)"
    R"("reasoning_effort":"low","safety_identifier":"s","service_tier":"auto","store":false,)"
    R"("user":"u","verbosity":"low","stream_options":{"include_obfuscation":false},)"
    R"("modalities":["text"],"function_call":"none","functions":[{"name":"f"}])";

TEST_F(OpenAiErrorsTest, KeysWithoutEffectAreAcceptedAndNamed) {
  AnswerWith({"a"}, FinishReason::kLength);
  const auto chat = Post("/v1/chat/completions", Chat(kHarmless));
  EXPECT_EQ(chat.status, 200) << chat.body;
  EXPECT_EQ(chat.headers.at("x-penstock-ignored"),
            "metadata,parallel_tool_calls,prediction,prompt_cache_key,prompt_cache_options,"
            "prompt_cache_retention,reasoning_effort,safety_identifier,service_tier,store,user,"
            "verbosity,include_obfuscation");
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
