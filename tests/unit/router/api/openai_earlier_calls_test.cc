// Calls and results that a client sends back, on the routes of chats.
#include "router/answer/format.h"
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using ::testing::HasSubstr;
using testing::RawResponse;

// A chat whose last answer has these `tool_calls`, and the result of the call "c".
std::string ChatAfter(std::string_view calls) {
  return R"({"messages":[{"role":"user","content":"?"},{"role":"assistant","tool_calls":)" +
         std::string(calls) + R"(},{"role":"tool","tool_call_id":"c","content":"12"}]})";
}

// The calls of one call "c" with these arguments.
std::string WithArguments(std::string_view arguments) {
  return R"([{"id":"c","type":"function","function":{"name":"now","arguments":)" +
         std::string(arguments) + "}}]";
}

class OpenAiEarlierCallsTest : public ApiTest {
 protected:
  OpenAiEarlierCallsTest() {
    api_.answer_format = answer::FindFormat("hermes");
    AnswerWith({"Hi"}, FinishReason::kEos);
  }

  void ExpectRefusal(const std::string& path, const std::string& body, const std::string& key,
                     const std::string& why) {
    const RawResponse response = Post(path, body);
    EXPECT_EQ(response.status, 400) << body << response.body;
    const value error = boost::json::parse(response.body).at("error");
    EXPECT_EQ(error.at("param"), value(key));
    EXPECT_EQ(error.at("message"), value("`" + key + "` " + why));
  }

  ChatInput Asked(const std::string& path, const std::string& body) {
    const RawResponse response = Post(path, body);
    EXPECT_EQ(response.status, 200) << body << response.body;
    const auto call = engine_.WaitForCall(asked_++);
    return call ? std::get<ChatInput>(call->request.prompt) : ChatInput{};
  }

 private:
  std::size_t asked_ = 0;
};

TEST_F(OpenAiEarlierCallsTest, WrongShapesAreNamed) {
  const std::string calls = "messages[1].tool_calls";
  const std::pair<std::string, std::pair<std::string, std::string>> cases[] = {
      {R"("x")", {calls, "must be an array. Given: \"x\""}},
      {R"({"a":1})", {calls, "must be an array. Given: {\"a\":1}"}},
      {R"(["x"])", {calls + "[0]", "must be an object. Given: \"x\""}},
      {R"([{"id":"c","type":"custom"}])", {calls + "[0].function", "is missing"}},
      {R"([{"function":"f"}])", {calls + "[0].function", "must be an object. Given: \"f\""}},
      {R"([{"function":{}}])", {calls + "[0].function.name", "is missing"}},
      {R"([{"function":{"name":5}}])", {calls + "[0].function.name", "must be a string. Given: 5"}},
      {R"([{"id":5,"function":{"name":"f"}}])", {calls + "[0].id", "must be a string. Given: 5"}},
      {WithArguments("[1]"),
       {calls + "[0].function.arguments", "must be a string of JSON or an object. Given: [1]"}},
  };
  for (const auto& [given, error] : cases) {
    ExpectRefusal("/v1/chat/completions", ChatAfter(given), error.first, error.second);
    ExpectRefusal("/tokenize", ChatAfter(given), error.first, error.second);
  }
  EXPECT_EQ(engine_.calls(), 0u);
}

// vLLM #43995 and #47761: where such a message is refused, its conversation can never go on,
// because the client sends it with every request. A model may have written it.
TEST_F(OpenAiEarlierCallsTest, ArgumentsThatAreCutOffReachTheTemplateAsText) {
  const ChatInput chat =
      Asked("/v1/chat/completions", ChatAfter(WithArguments(R"("{\"path\": \"/tm")")));
  EXPECT_THAT(chat.messages_json, HasSubstr(R"("arguments":"{\"path\": \"/tm")"));
  EXPECT_EQ(chat.text_arguments, "messages[1].tool_calls[0].function.arguments");
}

TEST_F(OpenAiEarlierCallsTest, NoArgumentsAreAnObjectOrAbsent) {
  for (const char* arguments : {R"("")", R"("{}")", "{}"}) {
    const ChatInput chat = Asked("/v1/chat/completions", ChatAfter(WithArguments(arguments)));
    EXPECT_THAT(chat.messages_json, HasSubstr(R"("arguments":{})"));
    EXPECT_EQ(chat.text_arguments, "");
  }
  Asked("/v1/chat/completions", ChatAfter(WithArguments("null")));
  Asked("/v1/chat/completions", ChatAfter(R"([{"id":"c","function":{"name":"f"}}])"));
}

TEST_F(OpenAiEarlierCallsTest, AResultNamesAnEarlierCall) {
  const std::string why = "must be the id of a call in an earlier message. Given: \"c\"";
  const std::string other = R"([{"id":"d","type":"function","function":{"name":"f"}}])";
  ExpectRefusal("/v1/chat/completions", ChatAfter(other), "messages[2].tool_call_id", why);
  ExpectRefusal("/v1/chat/completions", ChatAfter("null"), "messages[2].tool_call_id", why);
  ExpectRefusal("/v1/chat/completions",
                R"({"messages":[{"role":"tool","tool_call_id":"c","content":"12"}]})",
                "messages[0].tool_call_id", why);
  ExpectRefusal("/v1/chat/completions",
                R"({"messages":[{"role":"tool","tool_call_id":5,"content":"12"}]})",
                "messages[0].tool_call_id", "must be a string. Given: 5");
  EXPECT_EQ(engine_.calls(), 0u);
}

// Templates need no ids, and not every client has them.
TEST_F(OpenAiEarlierCallsTest, IdsMayBeAbsent) {
  Asked("/v1/chat/completions", R"({"messages":[{"role":"tool","content":"12"}]})");
  Asked("/v1/chat/completions", ChatAfter(R"([{"function":{"name":"f"}}])"));
}

TEST_F(OpenAiEarlierCallsTest, AnOutputOfAResponseNamesAnEarlierCall) {
  const std::string output = R"({"type":"function_call_output","call_id":"c","output":"12"})";
  const std::string call = R"({"type":"function_call","call_id":"c","name":"f","arguments":"{"})";
  const std::string why = "must be the `call_id` of an earlier function_call. Given: string \"c\"";
  ExpectRefusal("/v1/responses", R"({"input":[)" + output + "]}", "input[0].call_id", why);
  ExpectRefusal("/v1/responses", R"({"input":[)" + output + "," + call + "]}", "input[0].call_id",
                why);
  const RawResponse first = Post("/v1/responses", R"({"input":[)" + call + "]}");
  EXPECT_EQ(first.status, 200) << first.body;
  const value id = boost::json::parse(first.body).at("id");
  const RawResponse next =
      Post("/v1/responses", R"({"input":[)" + output + R"(],"previous_response_id":")" +
                                std::string(id.as_string()) + "\"}");
  EXPECT_EQ(next.status, 200) << next.body;
}

// What a template says about messages is about the input, from which they were made.
TEST_F(OpenAiEarlierCallsTest, AResponseNamesItsInputWhenTheTemplateFails) {
  const std::string place = "messages[0].tool_calls[0].function.arguments";
  FailWith({ErrorKind::kTemplate, "`" + place + "` is not a JSON object", place, {}});
  ExpectRefusal("/v1/responses", R"({"input":"hi"})", "input", "is not a JSON object");
  ExpectRefusal("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}]})", place,
                "is not a JSON object");
}

TEST_F(OpenAiEarlierCallsTest, AToolResultNamesAnEarlierToolUse) {
  const auto body = [](std::string_view id) {
    return R"({"model":"demo","max_tokens":4,"messages":[{"role":"user","content":"?"},
              {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},
              {"role":"user","content":[{"type":"tool_result","content":"12","tool_use_id":")" +
           std::string(id) + "\"}]}]}";
  };
  const RawResponse unknown = Post("/v1/messages", body("b"));
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(boost::json::parse(unknown.body).at("error").at("message"),
            "`messages[2].content[0].tool_use_id` must be the id of an earlier tool_use. "
            "Given: string \"b\"");
  EXPECT_EQ(Post("/v1/messages", body("a")).status, 200);
}

// Ollama reads no ids.
TEST_F(OpenAiEarlierCallsTest, OllamaPairsResultsThatNameNoCall) {
  const ChatInput chat = Asked("/api/chat", R"({"model":"demo","stream":false,"messages":[
      {"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f"}},
       {"id":"b","function":{"name":"f"}}]},
      {"role":"tool","tool_call_id":"b","content":"2"},
      {"role":"tool","tool_call_id":"x","content":"1"},
      {"role":"tool","tool_call_id":"y","content":"3"}]})");
  EXPECT_THAT(chat.messages_json, HasSubstr(R"("content":"2","tool_call_id":"b")"));
  EXPECT_THAT(chat.messages_json, HasSubstr(R"("content":"1","tool_call_id":"a")"));
  EXPECT_THAT(chat.messages_json, HasSubstr(R"("content":"3","tool_call_id":"")"));
}

}  // namespace
}  // namespace penstock::router
