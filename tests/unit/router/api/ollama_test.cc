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

constexpr std::string_view kTools =
    R"("tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object",
    "properties":{"zone":{"type":"string"}}}}}])";

class OllamaTest : public ApiTest {
 protected:
  OllamaTest() { api_.answer_format = answer::FindFormat("hermes"); }

  static std::string Chat(std::string_view more = R"("stream":false)",
                          std::string_view messages = R"([{"role":"user","content":"hi"}])") {
    return R"({"model":"demo:latest","messages":)" + std::string(messages) + "," +
           std::string(more) + "}";
  }
  static std::string Prompt(std::string_view more) {
    return R"({"model":"demo","prompt":"hi","stream":false)" +
           std::string(more.empty() ? "" : ",") + std::string(more) + "}";
  }
  value Answer(std::string_view path, const std::string& body) {
    const auto response = Post(path, body);
    EXPECT_EQ(response.status, 200) << response.body;
    return parse(response.body);
  }
  GenerationRequest Asked(std::string_view path, const std::string& body) {
    AnswerWith({"ok"}, FinishReason::kEos);
    Answer(path, body);
    return engine_.WaitForCall(engine_.calls() - 1)->request;
  }
  std::vector<value> Lines(std::string_view path, const std::string& body) {
    const auto response = Post(path, body);
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(response.headers.at("content-type"), "application/x-ndjson");
    std::vector<value> lines;
    for (std::size_t at = 0; at < response.body.size();) {
      const std::size_t end = response.body.find('\n', at);
      lines.push_back(parse(response.body.substr(at, end - at)));
      at = end + 1;
    }
    return lines;
  }
  void ExpectRefusal(std::string_view path, const std::string& body, std::string_view what,
                     int status = 400) {
    const auto response = Post(path, body);
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_THAT(boost::json::value_to<std::string>(parse(response.body).at("error")),
                HasSubstr(what));
  }
};

TEST_F(OllamaTest, APlainChatIsOneObject) {
  AnswerWith({"Hel", "lo"}, FinishReason::kEos);
  const value answer = Answer("/api/chat", Chat());
  EXPECT_EQ(answer.at("model"), "demo:latest");
  EXPECT_EQ(boost::json::serialize(answer.at("message")),
            R"({"role":"assistant","content":"Hello"})");
  EXPECT_EQ(answer.at("done"), true);
  EXPECT_EQ(answer.at("done_reason"), "stop");
  EXPECT_EQ(answer.at("prompt_eval_count"), 5);
  EXPECT_EQ(answer.at("eval_count"), 2);
}

TEST_F(OllamaTest, ChatsStreamUnlessTheyAskNotTo) {
  AnswerWith(
      {" <think>\nHm.\n</think>\n\nIt is", " so.",
       " <tool_call>{\"name\": \"now\", \"arguments\": {\"zone\"", ": \"UTC\"}}", "</tool_call>"},
      FinishReason::kLength);
  const auto lines = Lines("/api/chat", Chat(kTools));
  std::string text, thinking;
  std::vector<value> calls;
  for (const value& line : lines) {
    const auto& message = line.at("message").as_object();
    text += boost::json::value_to<std::string>(message.at("content"));
    if (const auto* more = message.if_contains("thinking")) {
      thinking += boost::json::value_to<std::string>(*more);
    }
    if (const auto* more = message.if_contains("tool_calls")) calls.push_back(more->at(0));
    EXPECT_EQ(line.at("done").as_bool(), &line == &lines.back());
  }
  EXPECT_EQ(text, "It is so.");
  EXPECT_EQ(thinking, "Hm.");
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].at("function").at("name"), "now");
  EXPECT_EQ(calls[0].at("function").at("arguments").at("zone"), "UTC");
  EXPECT_EQ(lines.back().at("done_reason"), "length");
}

TEST_F(OllamaTest, OptionsReachTheEngine) {
  const GenerationRequest asked = Asked(
      "/api/chat", Chat(R"("stream":false,"options":{"num_predict":9,"temperature":0.5,"top_k":3,
      "top_p":0.7,"min_p":0.1,"seed":4,"stop":["x"],"repeat_penalty":1.2,"num_ctx":4096})"));
  EXPECT_EQ(asked.max_new_tokens, 9u);
  EXPECT_FLOAT_EQ(asked.sampling.temperature, 0.5f);
  EXPECT_EQ(asked.sampling.top_k, 3u);
  EXPECT_FLOAT_EQ(asked.sampling.min_p, 0.1f);
  EXPECT_FLOAT_EQ(asked.sampling.repetition_penalty, 1.2f);
  EXPECT_EQ(asked.seed, 4u);
  EXPECT_THAT(asked.stop, ElementsAre("x"));
  EXPECT_FALSE(asked.exact_length);
  const GenerationRequest plain = Asked("/api/chat", Chat());
  EXPECT_EQ(plain.max_new_tokens, std::nullopt);
  EXPECT_FLOAT_EQ(plain.sampling.temperature, 0.8f);
  EXPECT_EQ(plain.sampling.top_k, 40u);
}

TEST_F(OllamaTest, ResultsGetTheIdsOfTheirCalls) {
  const auto chat = std::get<ChatInput>(
      Asked("/api/chat", Chat(R"("stream":false)", R"([{"role":"user","content":"?"},
              {"role":"assistant","content":"","thinking":"Hm","tool_calls":[
                {"function":{"name":"a","arguments":{}}},{"function":{"name":"b"}}]},
              {"role":"tool","tool_name":"a","content":"1"},{"role":"tool","content":"2"}])"))
          .prompt);
  EXPECT_EQ(chat.messages_json,
            R"([{"role":"user","content":"?"},{"role":"assistant","content":"",)"
            R"("reasoning_content":"Hm","tool_calls":[{"id":"call00001","type":"function",)"
            R"("function":{"name":"a","arguments":{}}},{"id":"call00002","type":"function",)"
            R"("function":{"name":"b","arguments":{}}}]},{"role":"tool","content":"1",)"
            R"("tool_call_id":"call00001"},{"role":"tool","content":"2",)"
            R"("tool_call_id":"call00002"}])");
}

TEST_F(OllamaTest, ThinkIsAVariableOfTheTemplate) {
  const auto kwargs = [this](const std::string& think) {
    const auto asked = Asked("/api/chat", Chat(R"("stream":false,"think":)" + think));
    return std::get<ChatInput>(asked.prompt).kwargs_json;
  };
  EXPECT_THAT(kwargs("false"), HasSubstr(R"("enable_thinking":false)"));
  EXPECT_THAT(kwargs("true"), HasSubstr(R"("enable_thinking":true)"));
  EXPECT_THAT(kwargs("\"low\""), HasSubstr(R"("reasoning_effort":"low")"));
}

TEST_F(OllamaTest, GenerateAsksThroughTheTemplateUnlessRaw) {
  const auto chat =
      std::get<ChatInput>(Asked("/api/generate", Prompt(R"("system":"Be brief.")")).prompt);
  EXPECT_EQ(chat.messages_json,
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}])");
  const GenerationRequest raw = Asked("/api/generate", Prompt(R"("raw":true)"));
  EXPECT_EQ(std::get<std::string>(raw.prompt), "hi");
  EXPECT_EQ(raw.max_new_tokens, std::nullopt);
  AnswerWith({"a", "b"}, FinishReason::kEos);
  EXPECT_EQ(Answer("/api/generate", Prompt("")).at("response"), "ab");
}

// As in Ollama.
TEST_F(OllamaTest, ALengthOfZeroIsNoLimit) {
  for (const char* length : {"0", "-1", "-2"}) {
    const std::string options = R"("options":{"num_predict":)" + std::string(length) + "}";
    EXPECT_EQ(Asked("/api/chat", Chat("\"stream\":false," + options)).max_new_tokens, std::nullopt)
        << length;
    EXPECT_EQ(Asked("/api/generate", Prompt(options)).max_new_tokens, std::nullopt) << length;
    EXPECT_EQ(Asked("/api/generate", Prompt("\"raw\":true," + options)).max_new_tokens,
              std::nullopt)
        << length;
  }
}

TEST_F(OllamaTest, FormatsAreGrammars) {
  engine_.facts.has_grammar = true;
  EXPECT_TRUE(Asked("/api/chat", Chat(R"("stream":false,"format":"json")")).grammar);
  EXPECT_TRUE(Asked("/api/chat", Chat(R"("stream":false,"format":{"type":"object"})")).grammar);
  EXPECT_FALSE(Asked("/api/chat", Chat(R"("stream":false,"format":"")")).grammar);
  ExpectRefusal("/api/chat", Chat(R"("format":"xml")"), "`format` must be json or a JSON schema");
}

TEST_F(OllamaTest, ARequestWithoutAPromptLoadsTheModel) {
  EXPECT_EQ(Answer("/api/generate", R"({"model":"demo"})").at("done_reason"), "load");
  EXPECT_EQ(Answer("/api/chat", R"({"model":"demo","messages":[]})").at("done_reason"), "load");
  ExpectRefusal("/api/generate", R"({"model":"other"})", "does not exist", 404);
}

TEST_F(OllamaTest, BadRequestsNameTheField) {
  ExpectRefusal("/api/chat", "{}", "`model` is missing");
  ExpectRefusal("/api/chat", R"({"model":"other","messages":[{"role":"user","content":"a"}]})",
                "does not exist", 404);
  ExpectRefusal("/api/chat", Chat(R"("options":{"temperature":9})"),
                "`options.temperature` must be from 0");
  ExpectRefusal("/api/chat", Chat(R"("options":{"stop":[""]})"), "`options.stop`");
  ExpectRefusal("/api/chat",
                Chat("\"stream\":true", R"([{"role":"user","content":"a","images":["b"]}])"),
                "`messages[0].images` are not supported");
  ExpectRefusal("/api/generate", Prompt(R"("suffix":"b")"), "`suffix` is not supported");
  ExpectRefusal("/api/generate", Prompt(R"("template":"b")"), "`template` is not supported");
  ExpectRefusal("/api/generate", Prompt(R"("raw":true,"system":"b")"), "`system`");
  ExpectRefusal("/api/other", "{}", "no such route", 404);
}

TEST_F(OllamaTest, AFailureInAStreamIsItsLastLine) {
  engine_.script = [](const GenerationRequest&) {
    auto events = ApiTest::Events({"a"}, FinishReason::kEos, 7, false);
    events.back() = GenerationError{ErrorKind::kGeneration, "a shard was lost", "", {}};
    return events;
  };
  EXPECT_EQ(Lines("/api/chat", Chat("\"stream\":true")).back().at("error"), "a shard was lost");
}

TEST_F(OllamaTest, ModelsAreListedAndShown) {
  EXPECT_EQ(parse(Get("/api/tags").body).at("models").at(0).at("name"), "demo");
  EXPECT_EQ(parse(Get("/api/ps").body).at("models").at(0).at("context_length"), 256);
  EXPECT_TRUE(parse(Get("/api/version").body).at("version").is_string());
  const value shown = Answer("/api/show", R"({"model":"demo:latest"})");
  EXPECT_EQ(boost::json::serialize(shown.at("capabilities")),
            R"(["completion","tools","thinking"])");
  EXPECT_EQ(shown.at("model_info").at("llm.context_length"), 256);
  ExpectRefusal("/api/show", R"({"model":"other"})", "does not exist", 404);
}

}  // namespace
}  // namespace penstock::router
