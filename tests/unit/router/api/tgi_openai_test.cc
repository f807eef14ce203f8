// The OpenAI routes as TGI has them (--api-profile tgi).
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::RawResponse;
using ::testing::StartsWith;

constexpr std::string_view kHello = R"({"messages":[{"role":"user","content":"Hello"}]})";
constexpr std::string_view kStreamHello =
    R"({"messages":[{"role":"user","content":"Hello"}],"stream":true})";

class TgiOpenAiTest : public ApiTest {
 protected:
  TgiOpenAiTest() {
    dialects_.tgi_only = true;
    api_.cors_origins = {"*"};
  }
};

TEST_F(TgiOpenAiTest, AChatIsOneChoiceWithoutAnId) {
  AnswerWith({"Hi", "<eos>"}, FinishReason::kEos);
  const RawResponse response = Post("/v1/chat/completions", kHello);
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, StartsWith(R"({"object":"chat.completion","id":"","created":)"));
  EXPECT_THAT(response.body,
              EndsWith(R"("model":"org/demo","system_fingerprint":"0.1.0-native","choices":[)"
                       R"({"index":0,"message":{"role":"assistant","content":"Hi"},)"
                       R"("logprobs":null,"finish_reason":"stop"}],)"
                       R"("usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}})"));
  EXPECT_EQ(response.headers.at("access-control-allow-origin"), "*");
  EXPECT_EQ(response.headers.at("x-generated-tokens"), "2");
  const auto call = engine_.WaitForCall();
  EXPECT_EQ(std::get<std::string>(call->request.prompt), R"([{"role":"user","content":"Hello"}])");
  EXPECT_FALSE(call->request.add_special_tokens);
}

TEST_F(TgiOpenAiTest, AStreamRepeatsTheRoleAndEndsWithTheReason) {
  AnswerWith({"Hi", "<eos>"}, FinishReason::kEos);
  const std::string body = Post("/v1/chat/completions", kStreamHello).body;
  EXPECT_THAT(body, HasSubstr(R"("delta":{"role":"assistant","content":"Hi"},"logprobs":null,)"
                              R"("finish_reason":null}],"usage":null})"));
  EXPECT_THAT(body, EndsWith(R"("delta":{"role":"assistant","content":""},"logprobs":null,)"
                             R"("finish_reason":"stop"}],"usage":null})"
                             "\n\ndata: [DONE]\n\n"));
}

TEST_F(TgiOpenAiTest, WithoutAShardTheAnswerIsTgisWithAdvice) {
  std::optional<std::string> why = "No such file or directory (os error 2)";
  api_.connect_error = [&why] { return why; };
  GenerationError error;
  error.kind = ErrorKind::kUnavailable;
  error.message = "shard-0 was lost";
  FailWith(error);
  const RawResponse response = Post("/generate", R"({"inputs":"a"})");
  EXPECT_EQ(response.status, 424);
  EXPECT_EQ(response.body,
            "{\"error\":\"Request failed during generation: Server error: error trying to connect: "
            "No such file or directory (os error 2)\",\"error_type\":\"generation\"}");
  EXPECT_EQ(response.headers.at("retry-after"), "2");
  EXPECT_EQ(response.headers.at("x-should-retry"), "true");
  // A shard that listens again is being made ready.
  why = std::nullopt;
  const RawResponse later = Post("/generate", R"({"inputs":"a"})");
  EXPECT_EQ(later.status, 503);
  EXPECT_THAT(later.body, HasSubstr("shard-0 was lost"));
}

TEST_F(TgiOpenAiTest, AnErrorOfAStreamIsOneEventAndDone) {
  GenerationError error;
  error.kind = ErrorKind::kGeneration;
  error.message = "boom";
  FailWith(error);
  const RawResponse response = Post("/v1/chat/completions", kStreamHello);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(
      response.body,
      "data: {\"error\":{\"message\":\"Request failed during generation: Server error: boom\","
      "\"http_status_code\":422}}\n\ndata: [DONE]\n\n");
  EXPECT_EQ(Post("/v1/chat/completions", kHello).status, 424);
}

TEST_F(TgiOpenAiTest, AToolCallIsReadFromTheText) {
  engine_.facts.has_grammar = true;
  AnswerWith({R"({"function": {"_name": "add",)", R"( "a": 1}})", "<eos>"}, FinishReason::kEos);
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"add","parameters":{}}}]})";
  const std::string plain = std::string(kHello.substr(0, kHello.size() - 1)) + tools;
  EXPECT_THAT(Post("/v1/chat/completions", plain).body,
              HasSubstr(R"("tool_calls":[{"id":"0","type":"function","function":)"
                        R"({"description":null,"name":"add","arguments":"{\"a\":1}"}}])"));
  const std::string stream =
      std::string(kStreamHello.substr(0, kStreamHello.size() - 1)) + R"(,"logprobs":true)" + tools;
  const std::string events = Post("/v1/chat/completions", stream).body;
  EXPECT_THAT(events, HasSubstr(R"("function":{"name":"add","arguments":"{"}}])"
                                R"(},"logprobs":{"content":[{"token":"{","logprob":)"));
  EXPECT_THAT(events, HasSubstr(R"("function":{"name":null,"arguments":" \"a\": 1}"}}])"));
}

TEST_F(TgiOpenAiTest, NoToolGeneratesAgainWithoutTools) {
  engine_.facts.has_grammar = true;
  engine_.script = [](const GenerationRequest& request) {
    const bool forced = static_cast<bool>(request.grammar);
    return Events({forced ? R"({"function": {"_name": "no_tool"}})" : "plain"}, FinishReason::kEos,
                  1, true);
  };
  const std::string body =
      R"(,"tools":[{"type":"function","function":{"name":"add","parameters":{}}}]})";
  const std::string plain = std::string(kHello.substr(0, kHello.size() - 1)) + body;
  EXPECT_THAT(Post("/v1/chat/completions", plain).body, HasSubstr(R"("content":"plain")"));
  const std::string stream = std::string(kStreamHello.substr(0, kStreamHello.size() - 1)) + body;
  const std::string events = Post("/v1/chat/completions", stream).body;
  EXPECT_THAT(events, HasSubstr(R"("content":"plain")"));
  EXPECT_THAT(events, EndsWith("data: [DONE]\n\n"));
}

TEST_F(TgiOpenAiTest, PromptsOfACompletionTakeTurns) {
  AnswerWith({"x", "<eos>"}, FinishReason::kEos);
  const std::string body = Post("/v1/completions", R"({"prompt":["a","b"],"stream":true})").body;
  const std::size_t first = body.find(R"({"index":0,"text":"x")");
  const std::size_t second = body.find(R"({"index":1,"text":"x")");
  const std::size_t end = body.find(R"({"index":0,"text":"<eos>")");
  EXPECT_LT(first, second);
  EXPECT_LT(second, end);
  EXPECT_NE(end, body.npos);
  EXPECT_THAT(Post("/v1/completions", R"({"prompt":"a","suffix":"b"})").body,
              HasSubstr("suffix not supported"));
}

TEST_F(TgiOpenAiTest, RoutesThatAreMissingAreEmptyAndPreflightsAreAnswered) {
  const RawResponse missing = Get("/nowhere");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.body, "");
  const RawResponse preflight = testing::RawClient::Fetch(
      port_, "OPTIONS /generate HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n");
  EXPECT_EQ(preflight.status, 200);
  EXPECT_EQ(preflight.headers.at("access-control-allow-methods"), "GET,POST");
  EXPECT_EQ(preflight.headers.at("access-control-allow-headers"), "content-type");
  EXPECT_EQ(missing.headers.count("access-control-expose-headers"), 0u);
}

TEST_F(TgiOpenAiTest, UnknownKeysAreNotNamedAsInTgi) {
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/generate", R"({"inputs":"a","x":1})").headers.count("x-penstock-ignored"), 0u);
}

TEST_F(TgiOpenAiTest, OnlyTheAllowedOriginGetsCorsHeaders) {
  api_.cors_origins = {"http://one.example"};
  EXPECT_EQ(
      Get("/info", "Origin: http://one.example\r\n").headers.at("access-control-allow-origin"),
      "http://one.example");
  EXPECT_EQ(
      Get("/info", "Origin: http://two.example\r\n").headers.count("access-control-allow-origin"),
      0u);
}

// Else a page with OpenAI's client would need the operator to list its every header.
TEST_F(TgiOpenAiTest, HeadersThatTheOperatorAddsAllowThoseOfSdksToo) {
  api_.cors_headers = {"X-Own"};
  Start();
  const auto response = testing::RawClient::Fetch(
      port_,
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\nOrigin: http://page\r\n"
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: authorization,x-stainless-os,x-own,x-other\r\n\r\n");
  EXPECT_EQ(response.headers.at("access-control-allow-headers"),
            "authorization,x-api-key,content-type,x-request-id,x-own,x-stainless-os");
}

}  // namespace
}  // namespace penstock::router
