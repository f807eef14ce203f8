#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "router/answer/format.h"
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::parse;
using boost::json::value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kRoute = "/v1/messages";
constexpr std::string_view kTools =
    R"("tools":[{"name":"get_weather","description":"Looks.","input_schema":{"type":"object",
    "properties":{"city":{"type":"string"}}}},{"name":"now","input_schema":{"type":"object"}}])";

class AnthropicTest : public ApiTest {
 protected:
  AnthropicTest() { api_.answer_format = answer::FindFormat("hermes"); }

  static std::string Body(std::string_view more = "",
                          std::string_view messages = R"([{"role":"user","content":"hi"}])") {
    return R"({"model":"demo","max_tokens":64,"messages":)" + std::string(messages) +
           (more.empty() ? "" : ",") + std::string(more) + "}";
  }
  value Answer(const std::string& body) {
    const auto response = Post(kRoute, body);
    EXPECT_EQ(response.status, 200) << response.body;
    return parse(response.body);
  }
  // What the engine was asked for.
  GenerationRequest Asked(const std::string& body) {
    AnswerWith({"ok"}, FinishReason::kEos);
    Answer(body);
    return engine_.WaitForCall(engine_.calls() - 1)->request;
  }
  ChatInput Chat(const std::string& body) { return std::get<ChatInput>(Asked(body).prompt); }
  void ExpectRefusal(const std::string& body, std::string_view what) {
    const auto response = Post(kRoute, body);
    EXPECT_EQ(response.status, 400) << response.body;
    const value error = parse(response.body);
    EXPECT_EQ(error.at("type"), "error");
    EXPECT_EQ(error.at("error").at("type"), "invalid_request_error");
    EXPECT_THAT(boost::json::value_to<std::string>(error.at("error").at("message")),
                HasSubstr(what));
  }
  // The events of a stream; each names its type twice.
  std::vector<value> Events(const std::string& body) {
    const auto response = Post(kRoute, body);
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
    std::vector<value> events;
    const std::string& text = response.body;
    for (std::size_t at = text.find("event: "); at != std::string::npos;
         at = text.find("event: ", at)) {
      const std::size_t line = text.find("\ndata: ", at);
      const std::size_t end = text.find("\n\n", at);
      events.push_back(parse(text.substr(line + 7, end - line - 7)));
      EXPECT_EQ(boost::json::value_to<std::string>(events.back().at("type")),
                text.substr(at + 7, line - at - 7));
      at = end;
    }
    return events;
  }
  static std::vector<std::string> Types(const std::vector<value>& events) {
    std::vector<std::string> types;
    for (const value& event : events) {
      types.push_back(boost::json::value_to<std::string>(event.at("type")));
    }
    return types;
  }
};

TEST_F(AnthropicTest, APlainAnswerHasBlocksAndUsage) {
  AnswerWith({"Hel", "lo"}, FinishReason::kEos);
  const auto response = Post(kRoute, Body(), "X-Request-Id: r1\r\n");
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.headers.at("request-id"), "r1");
  const value message = parse(response.body);
  EXPECT_EQ(message.at("type"), "message");
  EXPECT_EQ(message.at("role"), "assistant");
  EXPECT_EQ(message.at("model"), "demo");
  EXPECT_EQ(boost::json::serialize(message.at("content")), R"([{"type":"text","text":"Hello"}])");
  EXPECT_EQ(message.at("stop_reason"), "end_turn");
  EXPECT_TRUE(message.at("stop_sequence").is_null());
  EXPECT_EQ(message.at("usage").at("input_tokens"), 5);
  EXPECT_EQ(message.at("usage").at("output_tokens"), 2);
}

TEST_F(AnthropicTest, CachedTokensAreNoInputTokens) {
  engine_.script = [](const GenerationRequest&) {
    auto events = ApiTest::Events({"a"}, FinishReason::kEos, 7, false);
    auto& start = std::get<GenerationStart>(events.front());
    start.cached_tokens = 2;
    start.kept_tokens = 4;
    std::get<GenerationEnd>(events.back()).cached_tokens = 2;
    return events;
  };
  const value usage = Answer(Body()).at("usage");
  EXPECT_EQ(usage.at("cache_read_input_tokens"), 2);
  EXPECT_EQ(usage.at("cache_creation_input_tokens"), 2);
  EXPECT_EQ(usage.at("input_tokens"), 1);
  const auto events = Events(Body(R"("stream":true)"));
  EXPECT_EQ(events.front().at("message").at("usage").at("cache_read_input_tokens"), 2);
  EXPECT_EQ(events[events.size() - 2].at("usage").at("input_tokens"), 1);
}

TEST_F(AnthropicTest, StopReasonsNameWhatEnded) {
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Answer(Body()).at("stop_reason"), "max_tokens");
  engine_.script = [](const GenerationRequest& request) {
    EXPECT_THAT(request.stop, ElementsAre("END"));
    auto events = ApiTest::Events({"a"}, FinishReason::kStopString, 7, false);
    std::get<GenerationEnd>(events.back()).stop = "END";
    return events;
  };
  const value stopped = Answer(Body(R"("stop_sequences":["END"])"));
  EXPECT_EQ(stopped.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(stopped.at("stop_sequence"), "END");
}

TEST_F(AnthropicTest, AnAnswerHasThinkingTextAndCalls) {
  AnswerWith({" <think>\nH", "m.\n</think>\n\nI look.\n",
              " <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}",
              "</tool_call>"},
             FinishReason::kEos);
  const std::string body =
      Body(std::string(kTools) + R"(,"thinking":{"type":"enabled","budget_tokens":16})");
  const value message = Answer(body);
  EXPECT_EQ(message.at("stop_reason"), "tool_use");
  const auto& content = message.at("content").as_array();
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0].at("thinking"), "Hm.");
  EXPECT_FALSE(content[0].at("signature").as_string().empty());
  EXPECT_EQ(content[1].at("text"), "I look.");
  EXPECT_EQ(content[2].at("name"), "get_weather");
  EXPECT_EQ(content[2].at("input").at("city"), "Rome");
  // Reasoning that was not asked for is not shown.
  const value quiet = Answer(Body(kTools));
  EXPECT_EQ(quiet.at("content").as_array().size(), 2u);
  EXPECT_GT(quiet.at("usage").at("output_tokens_details").at("thinking_tokens").as_int64(), 0);
}

TEST_F(AnthropicTest, ACutCallKeepsItsArguments) {
  AnswerWith({" <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Ro"},
             FinishReason::kLength);
  const value message = Answer(Body(kTools));
  EXPECT_EQ(message.at("stop_reason"), "max_tokens");
  EXPECT_EQ(message.at("content").at(0).at("input").at("INVALID_JSON"), R"({"city": "Ro)");
}

TEST_F(AnthropicTest, AStreamOpensAndClosesEachBlock) {
  AnswerWith({" <think>\nHm.\n</think>\n\nI look.\n",
              " <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}",
              "</tool_call>"},
             FinishReason::kEos);
  const auto events =
      Events(Body(std::string(kTools) + R"(,"thinking":{"type":"adaptive"},"stream":true)"));
  EXPECT_THAT(
      Types(events),
      ElementsAre("message_start", "ping", "content_block_start", "content_block_delta",
                  "content_block_delta", "content_block_stop", "content_block_start",
                  "content_block_delta", "content_block_stop", "content_block_start",
                  "content_block_delta", "content_block_stop", "message_delta", "message_stop"));
  EXPECT_EQ(events[2].at("content_block").at("type"), "thinking");
  EXPECT_EQ(events[3].at("delta").at("thinking"), "Hm.");
  EXPECT_EQ(events[4].at("delta").at("type"), "signature_delta");
  EXPECT_EQ(events[6].at("index"), 1);
  EXPECT_EQ(events[9].at("content_block").at("name"), "get_weather");
  EXPECT_EQ(boost::json::serialize(events[9].at("content_block").at("input")), "{}");
  EXPECT_EQ(events[10].at("delta").at("partial_json"), R"({"city": "Rome"})");
  EXPECT_EQ(events[12].at("delta").at("stop_reason"), "tool_use");
  EXPECT_EQ(events[12].at("usage").at("output_tokens"), 3);
}

TEST_F(AnthropicTest, MessagesBecomeThoseOfTheTemplate) {
  const ChatInput chat =
      Chat(Body(std::string(kTools) +
                    R"(,"system":[{"type":"text","text":"Be"},{"type":"text","text":"brief"}])",
                R"([{"role":"user","content":"Weather?"},
          {"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":"s"},
            {"type":"redacted_thinking","data":"x"},{"type":"text","text":"I look."},
            {"type":"tool_use","id":"t1","name":"get_weather","input":{"city":"Rome"}}]},
          {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":false,
            "content":[{"type":"text","text":"12"},{"type":"text","text":"C"}]},
            {"type":"text","text":"And now?"}]},
          {"role":"user","content":"Please."}])"));
  EXPECT_EQ(chat.messages_json,
            R"([{"role":"system","content":"Be\nbrief"},{"role":"user","content":"Weather?"},)"
            R"({"role":"assistant","content":"I look.","reasoning_content":"Hm","tool_calls":)"
            R"([{"id":"t1","type":"function","function":{"name":"get_weather","arguments":)"
            R"({"city":"Rome"}}}]},{"role":"tool","tool_call_id":"t1","content":"12\nC"},)"
            R"({"role":"user","content":"And now?\nPlease."}])");
  EXPECT_THAT(chat.tools_json, HasSubstr(R"("function":{"name":"get_weather","description":)"));
  EXPECT_EQ(chat.kept_messages_json, "");
}

// The SDK's tool runner asks for a thread. With these details it sends the whole conversation; an
// answer without them would make it send the last message alone.
TEST_F(AnthropicTest, AThreadIsRefusedAsTheSdksUnderstand) {
  const auto response = Post("/v1/messages", Body(R"("thread":{"type":"create"})"));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("`thread` is not supported: send the whole conversation"));
  EXPECT_THAT(response.body, HasSubstr(R"("details":{"error_code":"thread_unsupported_request",)"
                                       R"("unsupported":["thread"]})"));
  EXPECT_EQ(engine_.calls(), 0u);
}

TEST_F(AnthropicTest, AnEmptySystemPromptIsNoMessage) {
  EXPECT_EQ(Chat(Body(R"("system":"")")).messages_json, R"([{"role":"user","content":"hi"}])");
}

TEST_F(AnthropicTest, ThinkingIsAVariableOfTheTemplate) {
  EXPECT_THAT(Chat(Body()).kwargs_json, HasSubstr(R"("enable_thinking":false)"));
  EXPECT_THAT(Chat(Body(R"("thinking":{"type":"disabled"})")).kwargs_json,
              HasSubstr(R"("enable_thinking":false)"));
  const std::string on =
      Chat(Body(R"("thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"})"))
          .kwargs_json;
  EXPECT_THAT(on, HasSubstr(R"("enable_thinking":true)"));
  EXPECT_THAT(on, HasSubstr(R"("reasoning_effort":"high")"));
}

TEST_F(AnthropicTest, CacheControlKeepsThePromptUpToTheBlock) {
  const std::string marked = R"("cache_control":{"type":"ephemeral"})";
  EXPECT_EQ(
      Chat(Body(R"("system":[{"type":"text","text":"S",)" + marked + "}]")).kept_messages_json,
      R"([{"role":"system","content":"S"},{"role":"user","content":""}])");
  EXPECT_EQ(Chat(Body("", R"([{"role":"user","content":[{"type":"text","text":"a",)" + marked +
                              R"(}]},{"role":"assistant","content":"b"},
                              {"role":"user","content":"c"}])"))
                .kept_messages_json,
            R"([{"role":"user","content":"a"}])");
  EXPECT_EQ(
      Chat(Body(R"("tools":[{"name":"now","input_schema":{},)" + marked + "}]")).kept_messages_json,
      R"([{"role":"user","content":""}])");
}

TEST_F(AnthropicTest, SamplingReachesTheEngine) {
  const GenerationRequest asked = Asked(Body(R"("temperature":0.5,"top_k":7,"top_p":0.9)"));
  EXPECT_EQ(asked.max_new_tokens, 64u);
  EXPECT_FLOAT_EQ(asked.sampling.temperature, 0.5f);
  EXPECT_EQ(asked.sampling.top_k, 7u);
  EXPECT_FLOAT_EQ(asked.sampling.top_p, 0.9f);
}

TEST_F(AnthropicTest, AToolChoiceLimitsTheCalls) {
  AnswerWith({" <tool_call>{\"name\": \"now\"}</tool_call>",
              " <tool_call>{\"name\": \"now\"}</tool_call>"},
             FinishReason::kEos);
  const auto blocks = [this](std::string_view choice) {
    return Answer(Body(std::string(kTools) + R"(,"tool_choice":)" + std::string(choice)))
        .at("content")
        .as_array()
        .size();
  };
  EXPECT_EQ(blocks(R"({"type":"auto"})"), 2u);
  EXPECT_EQ(blocks(R"({"type":"auto","disable_parallel_tool_use":true})"), 1u);
  const value none = Answer(Body(std::string(kTools) + R"(,"tool_choice":{"type":"none"})"));
  EXPECT_EQ(none.at("content").at(0).at("type"), "text");
}

TEST_F(AnthropicTest, BadRequestsNameTheField) {
  ExpectRefusal(R"({"model":"demo","messages":[{"role":"user","content":"a"}]})",
                "`max_tokens` is missing");
  ExpectRefusal("{", "the body is not valid JSON: it ends within an object (line 1, column 1)");
  ExpectRefusal(Body("", "[]"), "`messages` must have at least one message");
  ExpectRefusal(Body("", R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])"),
                "prefill");
  ExpectRefusal(Body("", R"([{"role":"user","content":[{"type":"image","source":{}}]}])"),
                "`messages[0].content[0].type` must be text or tool_result. Given: string "
                "\"image\", and this server's models read text only");
  ExpectRefusal(Body("", R"([{"role":"other","content":"a"}])"), "`messages[0].role`");
  ExpectRefusal(Body("", R"([{"role":"user","content":[]}])"), "at least one block");
  ExpectRefusal(Body(R"("tools":[{"type":"web_search_20250305","name":"web_search"}])"),
                "`tools[0].type` must be custom");
  ExpectRefusal(Body(R"("tools":[{"name":"a"}])"), "`tools[0].input_schema` is missing");
  constexpr std::string_view kTwice = R"({"name":"a","input_schema":{}})";
  ExpectRefusal(Body("\"tools\":[" + std::string(kTwice) + "," + std::string(kTwice) + "]"),
                "`tools[1].name` must be unique");
  ExpectRefusal(Body(R"("thinking":{"type":"adaptive"},"output_config":{"effort":"ultra"})"),
                "`output_config.effort` must be");
  ExpectRefusal(Body(R"("tool_choice":{"type":"each"})"), "`tool_choice.type`");
  ExpectRefusal(Body(R"("thinking":{"type":"enabled"})"), "`thinking.budget_tokens` is missing");
  ExpectRefusal(Body(R"("stop_sequences":[""])"), "`stop_sequences` must not have an empty");
  ExpectRefusal(Body(R"("temperature":9)"), "`temperature` must be from 0");
  ExpectRefusal(R"({"model":"demo","max_tokens":0,"messages":[{"role":"user","content":"a"}]})",
                "`max_tokens` must be at least 1. Given: 0");
  ExpectRefusal(Body(R"("output_config":{"format":{"type":"xml"}})"),
                "`output_config.format.type` must be json_schema");
  ExpectRefusal(Body(R"("mcp_servers":[{}])"), "`mcp_servers` are not supported");
}

TEST_F(AnthropicTest, LengthErrorsHaveTheTextsThatClientsRead) {
  GenerationError error{ErrorKind::kValidation, "too long", "inputs", {}};
  error.length = LengthExceeded{.prompt_tokens = 200, .limit = 128, .context = 256};
  FailWith(error);
  ExpectRefusal(Body(), "prompt is too long: 200 tokens > 128 maximum");
  error.length =
      LengthExceeded{.prompt_tokens = 100, .max_new_tokens = 200, .limit = 256, .context = 256};
  FailWith(error);
  ExpectRefusal(Body(), "input length and `max_tokens` exceed context limit: 100 + 200 > 256");
  error.length->prompt_tokens = 256;  // a smaller `max_tokens` does not help
  FailWith(error);
  ExpectRefusal(Body(), "prompt is too long: 256 tokens > 255 maximum");
}

TEST_F(AnthropicTest, EachErrorHasItsTypeAndTheRequestsId) {
  const auto unknown = Post(kRoute, R"({"model":"other","max_tokens":1,"messages":
      [{"role":"user","content":"a"}]})",
                            "X-Request-Id: r1\r\n");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.headers.at("request-id"), "r1");
  EXPECT_EQ(parse(unknown.body).at("error").at("type"), "not_found_error");
  EXPECT_EQ(parse(unknown.body).at("request_id"), "r1");
  FailWith({ErrorKind::kUnavailable, "no group is up", "", {}});
  const auto down = Post(kRoute, Body());
  EXPECT_EQ(down.status, 529);
  EXPECT_EQ(parse(down.body).at("error").at("type"), "overloaded_error");
  FailWith({ErrorKind::kOverloaded, "full", "", {}});
  const auto full = Post(kRoute, Body());
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(parse(full.body).at("error").at("type"), "rate_limit_error");
  const auto missing = Get("/v1/messages/batches");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(parse(missing.body).at("error").at("type"), "not_found_error");
  EXPECT_TRUE(parse(missing.body).as_object().contains("request_id"));
}

TEST_F(AnthropicTest, AFailureInAStreamIsItsLastEvent) {
  engine_.script = [](const GenerationRequest&) {
    auto events = ApiTest::Events({"a"}, FinishReason::kEos, 7, false);
    events.back() = GenerationError{ErrorKind::kGeneration, "a shard was lost", "", {}};
    return events;
  };
  const auto events = Events(Body(R"("stream":true)"));
  EXPECT_EQ(events.back().at("type"), "error");
  EXPECT_EQ(events.back().at("error").at("type"), "api_error");
  EXPECT_TRUE(events.back().as_object().contains("request_id"));
}

TEST_F(AnthropicTest, TheKeyIsInEitherHeader) {
  api_.keys = std::make_shared<KeyRing>(*ApiKeys::Parse("secret"));
  AnswerWith({"a"}, FinishReason::kEos);
  EXPECT_EQ(Post(kRoute, Body(), "x-api-key: secret\r\n").status, 200);
  EXPECT_EQ(Post(kRoute, Body(), "Authorization: Bearer secret\r\n").status, 200);
  const auto refused = Post(kRoute, Body(), "x-api-key: other\r\n");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(parse(refused.body).at("error").at("type"), "authentication_error");
  EXPECT_THAT(refused.body, HasSubstr("(curl: -H 'x-api-key: KEY')"));
  EXPECT_EQ(Post(kRoute, Body(), "x-api-key: other\r\nAuthorization: Bearer secret\r\n").status,
            401);
}

TEST_F(AnthropicTest, KeysThatHaveNoEffectAreNamed) {
  AnswerWith({"a"}, FinishReason::kEos);
  const auto response =
      Post(kRoute, Body(R"("metadata":{"user_id":"u"},"novel":1)",
                        R"([{"role":"user","content":[{"type":"text","text":"a","new":1}]}])"));
  EXPECT_EQ(response.headers.at("x-penstock-ignored"), "novel,metadata");
}

TEST_F(AnthropicTest, CountTokensCountsTheRenderedPrompt) {
  const auto response = Post("/v1/messages/count_tokens",
                             R"({"model":"demo","messages":[{"role":"user","content":"hi"}]})");
  ASSERT_EQ(response.status, 200) << response.body;
  // The fake renders a chat as the JSON of its messages and each byte is a token.
  EXPECT_EQ(parse(response.body).at("input_tokens"),
            std::string_view(R"([{"role":"user","content":"hi"}])").size());
}

TEST_F(AnthropicTest, ModelsHaveAnthropicsFormForItsClients) {
  const value list = parse(Get("/v1/models", "anthropic-version: 2023-06-01\r\n").body);
  EXPECT_EQ(list.at("data").at(0).at("type"), "model");
  EXPECT_EQ(list.at("data").at(0).at("id"), "demo");
  EXPECT_EQ(list.at("has_more"), false);
  EXPECT_EQ(parse(Get("/v1/models").body).at("object"), "list");
}

}  // namespace
}  // namespace penstock::router
