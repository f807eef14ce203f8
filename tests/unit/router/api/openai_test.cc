#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <limits>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawResponse;

class OpenAiTest : public ApiTest {
 protected:
  static std::string Chat(std::string_view more = "") {
    std::string body = R"({"messages":[{"role":"user","content":"hi"}])";
    if (!more.empty()) body.append(",").append(more);
    return body + "}";
  }
  // The data lines of an event stream.
  static std::vector<std::string> DataLines(const std::string& body) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = body.find("\n\n", at);
      if (end == std::string::npos || body.compare(at, 6, "data: ") != 0) {
        ADD_FAILURE() << "not an event: " << body.substr(at);
        break;
      }
      lines.push_back(body.substr(at + 6, end - at - 6));
      at = end + 2;
    }
    return lines;
  }
  static std::string Text(const value& v) { return boost::json::value_to<std::string>(v); }
};

TEST_F(OpenAiTest, ChatAnswerHasEveryRequiredKey) {
  AnswerWith({"Hello", " you", "<eos>"}, FinishReason::kEos);
  const RawResponse response =
      Post("/v1/chat/completions", Chat(R"("model":"demo")"), "X-Request-Id: r1\r\n");
  EXPECT_EQ(response.status, 200);
  const value body = boost::json::parse(response.body);
  EXPECT_THAT(Text(body.at("id")), ::testing::StartsWith("chatcmpl-r1-"));
  EXPECT_EQ(body.at("object"), "chat.completion");
  EXPECT_GT(body.at("created").as_int64(), 1'700'000'000);
  EXPECT_EQ(body.at("model"), "demo");
  const value& choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("index"), 0);
  EXPECT_EQ(choice.at("message").at("role"), "assistant");
  EXPECT_EQ(choice.at("message").at("content"), "Hello you");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_TRUE(choice.at("logprobs").is_null());
  EXPECT_EQ(body.at("usage").at("prompt_tokens"), 5);
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 3);
  EXPECT_EQ(body.at("usage").at("total_tokens"), 8);
  EXPECT_EQ(body.at("usage").at("prompt_tokens_details").at("cached_tokens"), 0);
}

TEST_F(OpenAiTest, FinishReasons) {
  const std::vector<std::pair<FinishReason, std::string>> cases = {
      {FinishReason::kEos, "stop"},
      {FinishReason::kStopString, "stop"},
      {FinishReason::kStopToken, "stop"},
      {FinishReason::kLength, "length"}};
  for (const auto& [reason, name] : cases) {
    AnswerWith({"a"}, reason);
    const RawResponse response = Post("/v1/chat/completions", Chat());
    EXPECT_EQ(boost::json::parse(response.body).at("choices").at(0).at("finish_reason"),
              value(name));
  }
}

TEST_F(OpenAiTest, ChatStreamBeginsWithTheRoleAndEndsWithReasonUsageAndDone) {
  AnswerWith({"Hello", " you"}, FinishReason::kLength);
  const RawResponse response = Post(
      "/v1/chat/completions", Chat(R"("stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(response.headers.at("x-accel-buffering"), "no");
  EXPECT_TRUE(response.complete);
  const std::vector<std::string> lines = DataLines(response.body);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines.back(), "[DONE]");
  std::vector<value> chunks;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) chunks.push_back(boost::json::parse(lines[i]));
  for (const value& chunk : chunks) {
    EXPECT_EQ(chunk.at("object"), "chat.completion.chunk");
    EXPECT_EQ(chunk.at("id"), chunks[0].at("id"));
    EXPECT_EQ(chunk.at("created"), chunks[0].at("created"));
    EXPECT_TRUE(chunk.as_object().contains("usage"));
  }
  const auto choice = [&](std::size_t i) { return chunks[i].at("choices").at(0); };
  EXPECT_EQ(choice(0).at("delta").at("role"), "assistant");
  EXPECT_EQ(choice(0).at("delta").at("content"), "");
  EXPECT_EQ(choice(1).at("delta").at("content"), "Hello");
  EXPECT_EQ(choice(2).at("delta").at("content"), " you");
  EXPECT_TRUE(choice(2).at("finish_reason").is_null());
  EXPECT_TRUE(choice(3).at("delta").as_object().empty());
  EXPECT_EQ(choice(3).at("finish_reason"), "length");
  EXPECT_TRUE(chunks[3].at("usage").is_null());
  EXPECT_TRUE(chunks[4].at("choices").as_array().empty());
  EXPECT_EQ(chunks[4].at("usage").at("total_tokens"), 7);
}

TEST_F(OpenAiTest, WithoutIncludeUsageNoChunkHasUsage) {
  AnswerWith({"Hello"}, FinishReason::kLength);
  const RawResponse response = Post("/v1/chat/completions", Chat(R"("stream":true)"));
  EXPECT_THAT(response.body, Not(HasSubstr("usage")));
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(OpenAiTest, HeldBackTextComesWithTheEnd) {
  engine_.script = [](const GenerationRequest&) {
    auto events = Events({"ab", "ST"}, FinishReason::kLength, 0, false);
    std::get<GenerationToken>(events[2]).delta = "";
    std::get<GenerationEnd>(events[3]).tail = "ST";
    return events;
  };
  const RawResponse response = Post("/v1/chat/completions", Chat(R"("stream":true,"stop":"STOP")"));
  std::string text;
  for (const std::string& line : DataLines(response.body)) {
    if (line == "[DONE]") break;
    const value chunk = boost::json::parse(line);
    const auto& delta = chunk.at("choices").at(0).at("delta").as_object();
    if (delta.contains("content")) text += Text(delta.at("content"));
  }
  EXPECT_EQ(text, "abST");
  EXPECT_EQ(engine_.WaitForCall()->request.stop_rule, StopRule::kHide);
}

TEST_F(OpenAiTest, AStreamThatFailsMidwayHasExactlyOneErrorAndNoDone) {
  engine_.script = [](const GenerationRequest&) {
    auto events = Events({"a", "b"}, FinishReason::kLength, 0, false);
    events.back() = GenerationError{ErrorKind::kGeneration, "rank 1 was lost", "", {}};
    return events;
  };
  const RawResponse response = Post("/v1/chat/completions", Chat(R"("stream":true)"));
  EXPECT_EQ(response.status, 200);
  const std::vector<std::string> lines = DataLines(response.body);
  EXPECT_EQ(lines.back(),
            R"({"error":{"message":"rank 1 was lost","type":"server_error","param":null,)"
            R"("code":"generation_failed"}})");
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const auto& l) { return l.find("\"error\"") != l.npos; }),
            1);
  EXPECT_THAT(response.body, Not(HasSubstr("[DONE]")));
  EXPECT_TRUE(response.complete);
}

TEST_F(OpenAiTest, AnErrorBeforeTheFirstTokenHasAStatusOfItsOwnEvenForAStream) {
  FailWith({ErrorKind::kValidation, "TGI's words", "", LengthExceeded{300, 20, 256, 256, false}});
  const RawResponse response = Post("/v1/chat/completions", Chat(R"("stream":true)"));
  EXPECT_EQ(response.status, 400);
  const value error = boost::json::parse(response.body).at("error");
  // LiteLLM and others look for this phrase.
  EXPECT_EQ(error.at("message"),
            "This model's maximum context length is 256 tokens. However, you requested 320 tokens "
            "(300 in the prompt, 20 in the completion).");
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
}

TEST_F(OpenAiTest, EveryParameterReachesTheEngine) {
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/v1/chat/completions",
                 Chat(R"("temperature":0.5,"top_p":0.9,"max_tokens":5,"max_completion_tokens":7,
                      "stop":["x","y"],"seed":42,"frequency_penalty":0.5,"presence_penalty":-0.5,
                      "logprobs":true,"top_logprobs":3,"logit_bias":{"5":-100,"6":1.5},
                      "top_k":10,"min_p":0.1,"repetition_penalty":1.1,"min_tokens":2,
                      "ignore_eos":true,"stop_token_ids":[7],"usr":"u","stor":null)"))
                .status,
            200);
  const GenerationRequest r = engine_.WaitForCall()->request;
  EXPECT_EQ(std::get<ChatInput>(r.prompt).messages_json, R"([{"role":"user","content":"hi"}])");
  EXPECT_TRUE(std::get<ChatInput>(r.prompt).add_generation_prompt);
  EXPECT_FALSE(r.add_special_tokens);
  EXPECT_EQ(r.max_new_tokens, 7U);
  EXPECT_EQ(r.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(r.seed, 42U);
  EXPECT_TRUE(r.sampling.do_sample);
  EXPECT_EQ(r.sampling.temperature, 0.5f);
  EXPECT_EQ(r.sampling.top_p, 0.9f);
  EXPECT_EQ(r.sampling.top_k, 10U);
  EXPECT_EQ(r.sampling.min_p, 0.1f);
  EXPECT_EQ(r.sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(r.sampling.frequency_penalty, 0.5f);
  EXPECT_EQ(r.sampling.presence_penalty, -0.5f);
  EXPECT_EQ(r.logprobs.top_n, 3U);
  EXPECT_EQ(r.logprobs.kind, LogprobRequest::Kind::kRaw);
  EXPECT_EQ(r.min_new_tokens, 2U);
  EXPECT_TRUE(r.ignore_eos);
  EXPECT_EQ(r.stop_token_ids, (std::vector<TokenId>{7}));
  ASSERT_EQ(r.sampling.logit_bias.size(), 2U);
  EXPECT_EQ(r.sampling.logit_bias[0].token, 5);
  EXPECT_EQ(r.sampling.logit_bias[0].bias, -100.0f);
  EXPECT_THAT(metrics_.Render(), HasSubstr("penstock_unknown_keys_total{dialect=\"openai\"} 2\n"));
}

// The engine blames the length even where the client sent none.
TEST_F(OpenAiTest, ALengthErrorNamesAKeyThatTheClientSent) {
  const auto param = [this](const std::string& path, const std::string& body,
                            std::uint32_t max_new_tokens) {
    GenerationError error{ErrorKind::kValidation, "too long", "max_new_tokens", {}};
    error.length = {.prompt_tokens = 300, .max_new_tokens = max_new_tokens, .limit = 256};
    FailWith(error);
    const auto answer = boost::json::parse(Post(path, body).body);
    return std::string(answer.at("error").at("param").as_string());
  };
  const std::string chat = R"({"messages":[{"role":"user","content":"a"}])";
  const std::string prompt = R"({"prompt":"a")";
  EXPECT_EQ(param("/v1/chat/completions", chat + "}", 0), "messages");
  EXPECT_EQ(param("/v1/chat/completions", chat + R"(,"max_tokens":9})", 9), "max_tokens");
  EXPECT_EQ(param("/v1/chat/completions", chat + R"(,"max_completion_tokens":9})", 9),
            "max_completion_tokens");
  EXPECT_EQ(param("/v1/chat/completions", chat + R"(,"max_tokens":9})", 0), "messages");
  EXPECT_EQ(param("/v1/completions", prompt + "}", 16), "prompt");
  EXPECT_EQ(param("/v1/completions", prompt + R"(,"max_tokens":9})", 9), "max_tokens");
}

TEST_F(OpenAiTest, TheModelWasMadeWhenTheServerStarted) {
  const auto models = boost::json::parse(Get("/v1/models").body);
  EXPECT_GT(models.at("data").at(0).at("created").as_int64(), 1'700'000'000);
}

TEST_F(OpenAiTest, TemperatureZeroIsGreedyAndANegativeSeedIsNone) {
  AnswerWith({"a"}, FinishReason::kLength);
  Post("/v1/chat/completions", Chat(R"("temperature":0,"seed":-1,"stop":null,"n":1.0)"));
  const GenerationRequest r = engine_.WaitForCall()->request;
  EXPECT_FALSE(r.sampling.do_sample);
  EXPECT_EQ(r.sampling.temperature, 1.0f);
  EXPECT_EQ(r.seed, std::nullopt);
  EXPECT_TRUE(r.stop.empty());
}

TEST_F(OpenAiTest, MessagesKeepTheirTextAndTextPartsAreJoined) {
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/v1/chat/completions",
                 R"({"messages":[{"z":1.50,"content":"s\u00e4","role":"system","a":{"c":1,"b":[2]}},
             {"role":"user","content":[{"type":"text","text":"one "},{"text":"two\n"}]},
             {"role":"assistant","content":null,"tool_calls":[ {"function": {"name":"f"}} ]}]})")
                .status,
            200);
  EXPECT_EQ(std::get<ChatInput>(engine_.WaitForCall()->request.prompt).messages_json,
            R"([{"z":1.50,"content":"s\u00e4","role":"system","a":{"c":1,"b":[2]}},)"
            R"({"role":"user","content":"one two\n"},)"
            R"({"role":"assistant","content":null,"tool_calls":[ {"function": {"name":"f"}} ]}])");
}

struct BadBody {
  std::string more;
  int status;
  std::string message;
  std::string param;
};

TEST_F(OpenAiTest, BadValuesNameFieldValueAndLimit) {
  const std::vector<BadBody> cases = {
      {R"("temperature":"hot")", 400, "`temperature` must be a number. Given: string \"hot\"",
       "temperature"},
      {R"("temperature":2.5)", 400, "`temperature` must be from 0.0 to 2.0. Given: 2.5",
       "temperature"},
      {R"("top_p":-0.1)", 400, "`top_p` must be from 0.0 to 1.0. Given: -0.1", "top_p"},
      {R"("max_tokens":0)", 400, "`max_tokens` must be at least 1. Given: 0", "max_tokens"},
      {R"("max_tokens":-1)", 400, "`max_tokens` must be a positive integer. Given: integer `-1`",
       "max_tokens"},
      {R"("max_completion_tokens":0)", 400, "`max_completion_tokens` must be at least 1. Given: 0",
       "max_completion_tokens"},
      {R"("n":3)", 400, "`n` must be from 1 to 2 (--max-best-of). Given: 3", "n"},
      {R"("n":0)", 400, "`n` must be from 1 to 2 (--max-best-of). Given: 0", "n"},
      {R"("stream":"yes")", 400, "`stream` must be a boolean. Given: string \"yes\"", "stream"},
      {R"("stop":5)", 400, "`stop` must be a string or an array of strings. Given: integer `5`",
       "stop"},
      {R"("stop":[1])", 400, "`stop[0]` must be a string. Given: integer `1`", "stop[0]"},
      {R"("stop":"")", 400, "`stop` must not have an empty string", "stop"},
      {R"("presence_penalty":3)", 400, "`presence_penalty` must be from -2.0 to 2.0. Given: 3.0",
       "presence_penalty"},
      {R"("logit_bias":{"x":1})", 400,
       "`logit_bias` must be keyed by token ids. Given: string \"x\"", "logit_bias"},
      {R"("logit_bias":{"1000":1})", 400,
       "`logit_bias` must have token ids from 0 to 999. Given: 1000", "logit_bias"},
      {R"("logit_bias":{"1":101})", 400,
       "`logit_bias.1` must be a number from -100 to 100. Given: integer `101`", "logit_bias.1"},
      {R"("logit_bias":[])", 400,
       "`logit_bias` must be an object of token ids and biases. Given: an array", "logit_bias"},
      {R"("top_logprobs":2)", 400,
       "`top_logprobs` must be absent unless `logprobs` is true. Given: 2", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", 400,
       "`top_logprobs` must be from 0 to 20. Given: 21", "top_logprobs"},
      {R"("model":"gpt-4")", 404, "the model `gpt-4` does not exist. Served here: demo", "model"},
      {R"("tools":[{"type":"function"}])", 400, "`tools[0]` must have a `function`", "tools[0]"},
      {R"("tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{}}])",
       400, "`tools[1].function.name` must be a name that is not empty", "tools[1].function.name"},
      {R"("tools":{})", 400, "`tools` must be an array", "tools"},
      {R"("tools":[{"function":{"name":"f"}}])", 400,
       "`tools` need a chat template that shows how the model writes calls, or --tool-format; with "
       "`tool_choice` `none` the template sees them",
       "tools"},
      {R"("response_format":{"type":"json_object"})", 400, "the server does not offer grammars",
       "response_format"},
      {R"("response_format":{"type":"xml"})", 400,
       "`response_format.type` must be text, json_object, json_schema, regex, "
       "grammar or structural_tag. Given: \"xml\"",
       "response_format"},
      {R"("stop_token_ids":["a"])", 400,
       "`stop_token_ids[0]` must be an integer. Given: string \"a\"", "stop_token_ids[0]"},
      {R"("response_format":{"type":{}})", 400,
       "`response_format.type` must be a string. Given: an object", "response_format.type"},
      {R"("chat_template_kwargs":5)", 400, "`chat_template_kwargs` must be an object. Given: 5",
       "chat_template_kwargs"},
      {R"("response_format":{"type":"json_schema"})", 400,
       "`response_format.json_schema` must be an object with a `schema`", "response_format"},
  };
  for (const BadBody& c : cases) {
    const RawResponse response = Post("/v1/chat/completions", Chat(c.more));
    EXPECT_EQ(response.status, c.status) << c.more;
    const value error = boost::json::parse(response.body).at("error");
    EXPECT_EQ(error.at("message"), value(c.message)) << c.more;
    EXPECT_EQ(error.at("param"), value(c.param)) << c.more;
    EXPECT_TRUE(error.as_object().contains("type"));
    EXPECT_TRUE(error.as_object().contains("code"));
  }
  EXPECT_EQ(engine_.calls(), 0U);
}

TEST_F(OpenAiTest, BadBodiesAndMessages) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "the body is not valid JSON: it ends within an object (line 1, column 1)"},
      {"{}", "`messages` is missing"},
      {R"({"messages":[]})", "`messages` must have at least one message"},
      {R"({"messages":null})", "`messages` must be an array. Given: null"},
      {R"({"messages":"hi"})", "`messages` must be an array. Given: string \"hi\""},
      {R"({"messages":[5]})",
       "`messages[0]` must be an object with `role` and `content`. Given: integer `5`"},
      {R"({"messages":[{"content":"a"}]})", "`messages[0].role` is missing"},
      {R"({"messages":[{"role":"user"}]})", "`messages[0].content` is missing"},
      {R"({"messages":[{"role":"user","content":null}]})", "`messages[0].content` is missing"},
      {R"({"messages":[{"content":null,"role":"system"}]})", "`messages[0].content` is missing"},
      {R"({"messages":[{"role":"user","content":[{"type":"text","txt":"y"}]}]})",
       "`messages[0].content[0].text` is missing"},
      {R"({"messages":[{"role":"user","content":5}]})",
       "`messages[0].content` must be a string or an array of parts. Given: integer `5`"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
       "`messages[0].content[0]` must be a part of type `text`: images, audio and files are not "
       "read. Given: string \"image_url\""},
      {R"({"messages":[{"role":1}]})", "`messages[0].role` must be a string. Given: integer `1`"},
  };
  for (const auto& [body, message] : cases) {
    const RawResponse response = Post("/v1/chat/completions", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(boost::json::parse(response.body).at("error").at("message"), value(message)) << body;
  }
}

TEST_F(OpenAiTest, ChatLogprobsHoldBytesAndAlternatives) {
  engine_.script = [](const GenerationRequest&) {
    auto events = Events({"\xc3\xa4", "b", "<eos>"}, FinishReason::kEos, 0, false);
    std::get<GenerationToken>(events[1]).top = {
        {1, "x", -std::numeric_limits<float>::infinity(), false}};
    return events;
  };
  const std::string more = R"("logprobs":true,"top_logprobs":1)";
  const RawResponse plain = Post("/v1/chat/completions", Chat(more));
  const value content =
      boost::json::parse(plain.body).at("choices").at(0).at("logprobs").at("content");
  ASSERT_EQ(content.as_array().size(), 2U);
  EXPECT_EQ(boost::json::serialize(content.at(0).at("bytes")), "[195,164]");
  EXPECT_EQ(content.at(0).at("top_logprobs").at(0).at("logprob"), -9999.0);
  const RawResponse stream = Post("/v1/chat/completions", Chat(more + R"(,"stream":true)"));
  const value chunk = boost::json::parse(DataLines(stream.body)[1]);
  EXPECT_EQ(chunk.at("choices").at(0).at("logprobs").at("content").at(0).at("token"), "\xc3\xa4");
}

TEST_F(OpenAiTest, LogprobsDoNotShowAStopString) {
  engine_.script = [](const GenerationRequest&) {
    auto events = Events({"a", "ST", "OP"}, FinishReason::kStopString, 0, false);
    std::get<GenerationToken>(events[2]).delta = "";
    std::get<GenerationToken>(events[3]).delta = "";
    std::get<GenerationEnd>(events[4]).text = "a";
    return events;
  };
  for (const char* stream : {"true", "false"}) {
    const RawResponse response =
        Post("/v1/chat/completions",
             Chat(std::string(R"("stop":"STOP","logprobs":true,"stream":)") + stream));
    EXPECT_THAT(response.body, HasSubstr("\"token\":\"a\""));
    EXPECT_THAT(response.body, Not(HasSubstr("ST")));
    EXPECT_THAT(response.body, Not(HasSubstr("OP")));
  }
}

TEST_F(OpenAiTest, SeveralChoicesKeepTheirIndexAndCountThePromptOnce) {
  engine_.script = [](const GenerationRequest& request) {
    return Events({"c" + std::to_string(request.sampling.sibling)}, FinishReason::kLength, 0, true);
  };
  const value body = boost::json::parse(Post("/v1/chat/completions", Chat(R"("n":2)")).body);
  EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), "c0");
  EXPECT_EQ(body.at("choices").at(1).at("message").at("content"), "c1");
  EXPECT_EQ(body.at("usage").at("prompt_tokens"), 5);
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 2);
  const RawResponse stream = Post("/v1/chat/completions", Chat(R"("n":2,"stream":true)"));
  int finished = 0;
  for (const std::string& line : DataLines(stream.body)) {
    finished += line.find("\"finish_reason\":\"length\"") != line.npos;
  }
  EXPECT_EQ(finished, 2);
}

TEST_F(OpenAiTest, CompletionsTakeTextListsAndTokenIds) {
  AnswerWith({"x"}, FinishReason::kLength);
  const RawResponse text = Post("/v1/completions", R"({"prompt":"once"})");
  const value body = boost::json::parse(text.body);
  EXPECT_EQ(body.at("object"), "text_completion");
  EXPECT_THAT(Text(body.at("id")), ::testing::StartsWith("cmpl-"));
  EXPECT_EQ(body.at("choices").at(0).at("text"), "x");
  EXPECT_TRUE(body.at("choices").at(0).at("logprobs").is_null());
  EXPECT_EQ(engine_.WaitForCall(0)->request.max_new_tokens, 16U);  // OpenAI's default
  EXPECT_TRUE(engine_.WaitForCall(0)->request.add_special_tokens);

  const value two = boost::json::parse(Post("/v1/completions", R"({"prompt":["a","b"]})").body);
  EXPECT_EQ(two.at("choices").as_array().size(), 2U);
  EXPECT_EQ(two.at("usage").at("prompt_tokens"), 10);
  EXPECT_EQ(std::get<std::string>(engine_.WaitForCall(2)->request.prompt), "b");

  Post("/v1/completions", R"({"prompt":[1,2,3]})");
  EXPECT_EQ(std::get<std::vector<TokenId>>(engine_.WaitForCall(3)->request.prompt),
            (std::vector<TokenId>{1, 2, 3}));
  Post("/v1/completions", R"({"prompt":[[1],[2,3]],"max_tokens":4})");
  EXPECT_EQ(std::get<std::vector<TokenId>>(engine_.WaitForCall(5)->request.prompt),
            (std::vector<TokenId>{2, 3}));
}

TEST_F(OpenAiTest, BadPromptsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"prompt":5})",
       "`prompt` must be a string, an array of strings or of token ids. Given: integer `5`"},
      {R"({"prompt":""})", "`prompt` must be a string that is not empty. Given: \"\""},
      {R"({"prompt":[]})",
       "`prompt` must have from 1 to 4 prompts (--max-client-batch-size). Given: 0"},
      {R"({"prompt":[[]]})", "`prompt` must have at least one token"},
      {R"({"prompt":["a",1]})",
       "`prompt[1]` must be a string or an array of token ids. Given: integer `1`"},
      {R"({"prompt":[1,"a"]})", "`prompt[1]` must be a token id. Given: string \"a\""},
      {R"({"prompt":[1000]})", "`prompt` must have token ids from 0 to 999. Given: 1000"},
      {R"({"prompt":["a","b","c","d","e"]})",
       "`prompt` must have from 1 to 4 prompts (--max-client-batch-size). Given: 5"},
      {R"({"prompt":"a","suffix":"b"})", "`suffix` is not supported"},
      {R"({})", "`prompt` is missing"},
  };
  for (const auto& [body, message] : cases) {
    const RawResponse response = Post("/v1/completions", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(boost::json::parse(response.body).at("error").at("message"), value(message)) << body;
  }
}

TEST_F(OpenAiTest, CompletionStreamAndLogprobs) {
  engine_.script = [](const GenerationRequest&) {
    auto events = Events({"x", "\xc3\xa4", "y"}, FinishReason::kLength, 0, false);
    std::get<GenerationToken>(events[1]).top = {{1, "x", -0.25f, false}};
    return events;
  };
  const RawResponse plain = Post("/v1/completions", R"({"prompt":"a","logprobs":1})");
  EXPECT_THAT(plain.body,
              HasSubstr("\"logprobs\":{\"tokens\":[\"x\",\"\xc3\xa4\",\"y\"],"
                        "\"token_logprobs\":[-0.25,-0.5,-0.75],"
                        "\"top_logprobs\":[{\"x\":-0.25},{\"\xc3\xa4\":-0.5},{\"y\":-0.75}],"
                        "\"text_offset\":[0,1,2]}"));
  const RawResponse stream = Post("/v1/completions", R"({"prompt":"a","stream":true})");
  const std::vector<std::string> lines = DataLines(stream.body);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(boost::json::parse(lines[0]).at("choices").at(0).at("text"), "x");
  EXPECT_EQ(boost::json::parse(lines[3]).at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(lines[4], "[DONE]");
}

TEST_F(OpenAiTest, ModelsByNameAndByList) {
  const value list = boost::json::parse(Get("/v1/models").body);
  EXPECT_EQ(list.at("object"), "list");
  EXPECT_EQ(list.at("data").at(0).at("id"), "demo");
  EXPECT_EQ(list.at("data").at(0).at("max_model_len"), 256);
  EXPECT_EQ(Get("/v1/models/demo").status, 200);
  EXPECT_EQ(Get("/v1/models/org/demo").status, 200);
  EXPECT_EQ(Get("/v1/models/org%2Fdemo").status, 200);  // as the SDKs write it
  const RawResponse unknown = Get("/v1/models/other");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("\"code\":\"model_not_found\""));
}

}  // namespace
}  // namespace penstock::router
