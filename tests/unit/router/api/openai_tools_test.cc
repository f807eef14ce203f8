#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <set>

#include "router/answer/format.h"
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using ::testing::HasSubstr;

constexpr std::string_view kTools =
    R"("tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",
    "properties":{"city":{"type":"string"}}}}},{"type":"function","function":{"name":"now"}}])";

class OpenAiToolsTest : public ApiTest {
 protected:
  OpenAiToolsTest() { api_.answer_format = answer::FindFormat("hermes"); }

  static std::string Chat(std::string_view more,
                          std::string_view messages = R"([{"role":"user","content":"hi"}])") {
    return R"({"messages":)" + std::string(messages) + "," + std::string(kTools) +
           (more.empty() ? "" : ",") + std::string(more) + "}";
  }
  value Choice(std::string_view more) {
    const auto response = Post("/v1/chat/completions", Chat(more), "X-Request-Id: r1\r\n");
    EXPECT_EQ(response.status, 200) << response.body;
    return boost::json::parse(response.body).at("choices").at(0);
  }
  // The deltas and finish reasons of a stream.
  std::vector<value> Chunks(std::string_view more) {
    const auto response = Post("/v1/chat/completions", Chat(more), "X-Request-Id: r1\r\n");
    std::vector<value> chunks;
    for (std::size_t at = response.body.find("data: {"); at != std::string::npos;
         at = response.body.find("data: {", at)) {
      const std::size_t end = response.body.find("\n\n", at);
      chunks.push_back(boost::json::parse(response.body.substr(at + 6, end - at - 6)));
      at = end;
    }
    return chunks;
  }
  // Two calls after text, in tokens whose borders mean nothing.
  void AnswerWithCalls(FinishReason reason = FinishReason::kEos) {
    AnswerWith({"I ", "look.\n", " <tool_call>" + std::string("\n{\"name\": \"get_w"),
                "eather\", \"arguments\": {\"city\"", ": \"Par", "is\"}}\n", " </tool_call>",
                "\n<tool_call>{\"name\": \"now\"}</tool_call>"},
               reason);
  }
};

TEST_F(OpenAiToolsTest, PlainAnswersHaveTheCalls) {
  AnswerWithCalls();
  const value choice = Choice("");
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  const value& message = choice.at("message");
  EXPECT_EQ(message.at("content"), "I look.");
  const auto& calls = message.at("tool_calls").as_array();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].at("type"), "function");
  EXPECT_EQ(calls[0].at("function").at("name"), "get_weather");
  EXPECT_EQ(calls[0].at("function").at("arguments"), R"({"city": "Paris"})");
  EXPECT_EQ(calls[1].at("function").at("arguments"), "{}");
  EXPECT_NE(calls[0].at("id"), calls[1].at("id"));
  EXPECT_THAT(boost::json::value_to<std::string>(calls[0].at("id")),
              ::testing::StartsWith("call_"));
}

TEST_F(OpenAiToolsTest, AnAnswerWithoutCallsHasNoKeyOfThem) {
  AnswerWith({"Hi"}, FinishReason::kEos);
  const value choice = Choice("");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_FALSE(choice.at("message").as_object().contains("tool_calls"));
  EXPECT_FALSE(choice.at("message").as_object().contains("reasoning_content"));
}

TEST_F(OpenAiToolsTest, ContentIsNullIfThereAreOnlyCalls) {
  AnswerWith({" <tool_call>{\"name\": \"now\"}</tool_call>"}, FinishReason::kEos);
  EXPECT_TRUE(Choice("").at("message").at("content").is_null());
}

TEST_F(OpenAiToolsTest, StreamsNameEachCallOnceAndThenItsArguments) {
  AnswerWithCalls();
  const auto chunks = Chunks(R"("stream":true)");
  std::string content;
  std::string arguments[2];
  std::set<std::string> ids;
  for (const value& chunk : chunks) {
    const auto& delta = chunk.at("choices").at(0).at("delta").as_object();
    if (const auto* text = delta.if_contains("content")) {
      content += boost::json::value_to<std::string>(*text);
    }
    const auto* calls = delta.if_contains("tool_calls");
    if (calls == nullptr) continue;
    ASSERT_EQ(calls->as_array().size(), 1u);
    const value& call = calls->at(0);
    const auto index = static_cast<std::size_t>(call.at("index").as_int64());
    arguments[index] += boost::json::value_to<std::string>(call.at("function").at("arguments"));
    const bool first = call.as_object().contains("id");
    EXPECT_EQ(first, call.at("function").as_object().contains("name"));
    EXPECT_EQ(first, call.as_object().contains("type"));
    if (first) ids.insert(boost::json::value_to<std::string>(call.at("id")));
  }
  EXPECT_EQ(content, "I look.");
  EXPECT_EQ(arguments[0], R"({"city": "Paris"})");
  EXPECT_EQ(arguments[1], "{}");
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(chunks.back().at("choices").at(0).at("finish_reason"), "tool_calls");
}

TEST_F(OpenAiToolsTest, ACutCallEndsWithLength) {
  AnswerWith({" <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Pa"},
             FinishReason::kLength);
  const value choice = Choice("");
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(choice.at("message").at("tool_calls").at(0).at("function").at("arguments"),
            R"({"city": "Pa)");
}

TEST_F(OpenAiToolsTest, WithoutParallelCallsTheFirstCounts) {
  AnswerWithCalls();
  EXPECT_EQ(
      Choice(R"("parallel_tool_calls":false)").at("message").at("tool_calls").as_array().size(),
      1u);
}

TEST_F(OpenAiToolsTest, WithTheChoiceNoneCallsAreText) {
  AnswerWith({" <tool_call>{\"name\": \"now\"}</tool_call>"}, FinishReason::kEos);
  const value choice = Choice(R"("tool_choice":"none")");
  EXPECT_EQ(choice.at("message").at("content"), " <tool_call>{\"name\": \"now\"}</tool_call>");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
}

TEST_F(OpenAiToolsTest, OnlyAllowedToolsAreCalled) {
  AnswerWith({" <tool_call>{\"name\": \"now\"}</tool_call>"}, FinishReason::kEos);
  const value choice = Choice(
      R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[
      {"type":"function","function":{"name":"get_weather"}}]}})");
  EXPECT_FALSE(choice.at("message").as_object().contains("tool_calls"));
}

TEST_F(OpenAiToolsTest, AChoiceOfAnUnknownToolIsRefused) {
  const auto response =
      Post("/v1/chat/completions",
           Chat(R"("tool_choice":{"type":"function","function":{"name":"other"}})"));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("must be the name of a tool in `tools`"));
}

TEST_F(OpenAiToolsTest, ChoicesThatAreNotKnownAreRefused) {
  const auto any = Post("/v1/chat/completions", Chat(R"("tool_choice":"any")"));
  EXPECT_EQ(any.status, 400);
  EXPECT_THAT(any.body, HasSubstr("must be none, auto, required, a function or allowed_tools"));
  const auto list = Post("/v1/chat/completions", Chat(R"("tool_choice":["auto"])"));
  EXPECT_THAT(list.body, HasSubstr(R"(allowed_tools. Given: [\"auto\"])"));
  const auto without =
      Post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],)"
                                   R"("tool_choice":"required"})");
  EXPECT_EQ(without.status, 400);
  EXPECT_THAT(without.body, HasSubstr("must be none or auto without `tools`. Given: required"));
}

TEST_F(OpenAiToolsTest, ReasoningIsSplitAndItsTokensAreCounted) {
  AnswerWith({" <think>", "Hm", ".", " </think>", "\n\nHi"}, FinishReason::kEos);
  const auto response = Post("/v1/chat/completions", Chat(""));
  const value body = boost::json::parse(response.body);
  const value& message = body.at("choices").at(0).at("message");
  EXPECT_EQ(message.at("reasoning_content"), "Hm.");
  EXPECT_EQ(message.at("content"), "Hi");
  EXPECT_EQ(body.at("usage").at("completion_tokens_details").at("reasoning_tokens"), 4);
}

TEST_F(OpenAiToolsTest, ReasoningIsStreamed) {
  AnswerWith({" <think>", "Hm", ".", " </think>", "\n\nHi"}, FinishReason::kEos);
  std::string reasoning;
  for (const value& chunk : Chunks(R"("stream":true)")) {
    const auto& delta = chunk.at("choices").at(0).at("delta").as_object();
    if (const auto* text = delta.if_contains("reasoning_content")) {
      reasoning += boost::json::value_to<std::string>(*text);
    }
  }
  EXPECT_EQ(reasoning, "Hm.");
}

TEST_F(OpenAiToolsTest, TheTemplateIsGivenArgumentsAsObjectsAndTheEffort) {
  AnswerWith({"Hi"}, FinishReason::kEos);
  Post("/v1/chat/completions",
       Chat(R"("reasoning_effort":"xhigh","chat_template_kwargs":{"a":1})",
            R"([{"role":"user","content":"hi"},{"role":"assistant","content":null,"reasoning":"Hm",
            "tool_calls":[{"id":"c","type":"function","function":{"name":"now",
            "arguments":"{\"a\": 1}"}}]},{"role":"tool","tool_call_id":"c","content":"12"}])"));
  const auto call = engine_.WaitForCall();
  const auto& chat = std::get<ChatInput>(call->request.prompt);
  EXPECT_THAT(chat.messages_json, HasSubstr(R"("arguments":{"a":1})"));
  EXPECT_THAT(chat.messages_json, HasSubstr(R"("reasoning_content":"Hm")"));
  EXPECT_EQ(chat.kwargs_json, R"({"a":1,"reasoning_effort":"high"})");
  EXPECT_THAT(call->request.kept_markers, ::testing::Contains("<tool_call>"));
}

TEST_F(OpenAiToolsTest, AnUnknownEffortIsRefused) {
  const auto response = Post("/v1/chat/completions", Chat(R"("reasoning_effort":"hihg")"));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(
      response.body,
      HasSubstr("`reasoning_effort` must be none, minimal, low, medium, high, xhigh or max"));
  EXPECT_EQ(engine_.calls(), 0u);
}

TEST_F(OpenAiToolsTest, TheEffortNoneDisablesThinking) {
  AnswerWith({"Hi"}, FinishReason::kEos);
  Post("/v1/chat/completions", Chat(R"("reasoning_effort":"none")"));
  EXPECT_EQ(std::get<ChatInput>(engine_.WaitForCall()->request.prompt).kwargs_json,
            R"({"enable_thinking":false})");
}

// The Lark grammar of a request that the engine was given.
class OpenAiToolGrammarTest : public OpenAiToolsTest {
 protected:
  OpenAiToolGrammarTest() {
    engine_.facts.has_grammar = true;
    api_.reasons = true;
  }

  // The request of this body. The engine must have been given no others but by Asked.
  GenerationRequest Asked(std::string_view more) {
    AnswerWith({"Hi"}, FinishReason::kEos);
    const auto response = Post("/v1/chat/completions", Chat(more));
    EXPECT_EQ(response.status, 200) << response.body;
    return engine_.WaitForCall(asked_++)->request;
  }
  static std::string LarkOf(const GenerationRequest& request) {
    if (!request.grammar) return "";
    return std::get<GrammarSpec>(request.grammar.write()).source;
  }
  static std::string StrictTools(std::string_view schema) {
    return R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":)"
           R"({"name":"f","strict":true,"parameters":)" +
           std::string(schema) + "}}]}";
  }

  std::size_t asked_ = 0;
};

TEST_F(OpenAiToolGrammarTest, RequiredAndNamedChoicesForceCalls) {
  const std::string any = LarkOf(Asked(R"("tool_choice":"required")"));
  EXPECT_THAT(any, HasSubstr("get_weather"));
  EXPECT_THAT(any, HasSubstr("now"));
  EXPECT_THAT(any, HasSubstr(")* "));
  const std::string one = LarkOf(Asked(R"("tool_choice":"required","parallel_tool_calls":false)"));
  EXPECT_THAT(one, ::testing::Not(HasSubstr(")* ")));
  const std::string named =
      LarkOf(Asked(R"("tool_choice":{"type":"function","function":{"name":"now"}})"));
  EXPECT_THAT(named, HasSubstr("now"));
  EXPECT_THAT(named, ::testing::Not(HasSubstr("get_weather")));
  EXPECT_THAT(named, ::testing::Not(HasSubstr(")* ")));
  const std::string allowed =
      LarkOf(Asked(R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required",)"
                   R"("tools":[{"type":"function","function":{"name":"now"}}]}})"));
  EXPECT_THAT(allowed, ::testing::Not(HasSubstr("get_weather")));
}

TEST_F(OpenAiToolGrammarTest, ARequiredCallGoesBeforeTheFormatOfText) {
  const auto request =
      Asked(R"("tool_choice":"required","response_format":{"type":"json_object"})");
  EXPECT_THAT(LarkOf(request), HasSubstr("get_weather"));
}

TEST_F(OpenAiToolGrammarTest, OnlyStrictToolsNeedAGrammar) {
  EXPECT_EQ(LarkOf(Asked("")), "");
  AnswerWith({"Hi"}, FinishReason::kEos);
  Post("/v1/chat/completions", StrictTools(R"({"type":"object"})"));
  const auto call = engine_.WaitForCall(asked_);
  EXPECT_THAT(LarkOf(call->request), HasSubstr("[lazy]"));
  ASSERT_EQ(call->request.grammar.parts.size(), 1u);
  EXPECT_EQ(call->request.grammar.parts[0].field, "tools[0].function.parameters");
}

TEST_F(OpenAiToolGrammarTest, CallsCannotBeForcedWithoutGrammars) {
  engine_.facts.has_grammar = false;
  const auto required = Post("/v1/chat/completions", Chat(R"("tool_choice":"required")"));
  EXPECT_EQ(required.status, 400);
  EXPECT_THAT(required.body, HasSubstr("needs grammars, which the server does not offer"));
  const auto strict = Post("/v1/chat/completions", StrictTools("{}"));
  EXPECT_EQ(strict.status, 400);
  EXPECT_THAT(strict.body, HasSubstr(R"("param":"tools")"));
}

TEST_F(OpenAiToolGrammarTest, TheReasoningStandsBeforeTheGrammar) {
  const auto request = Asked(R"("response_format":{"type":"json_object"})");
  ASSERT_EQ(request.reasoning.markers.size(), 1u);
  EXPECT_EQ(request.reasoning.markers[0].close, "</think>");
  EXPECT_TRUE(request.reasoning.may_open);
  EXPECT_FALSE(Asked(R"("chat_template_kwargs":{"enable_thinking":false})").reasoning.may_open);
  EXPECT_FALSE(Asked(R"("reasoning_effort":"none")").reasoning.may_open);
}

TEST_F(OpenAiToolGrammarTest, TheBudgetOfTheReasoningHasTwoSpellings) {
  EXPECT_EQ(Asked("").reasoning.budget, std::nullopt);
  EXPECT_EQ(Asked(R"("thinking_budget":0)").reasoning.budget, 0u);
  EXPECT_EQ(Asked(R"("chat_template_kwargs":{"thinking_budget":7})").reasoning.budget, 7u);
  for (const std::string_view wrong : {R"("thinking_budget":-1)", R"("thinking_budget":1000001)",
                                       R"("chat_template_kwargs":{"thinking_budget":"many"})"}) {
    const auto response = Post("/v1/chat/completions", Chat(wrong));
    EXPECT_EQ(response.status, 400);
    EXPECT_THAT(response.body, HasSubstr("thinking_budget` must be an integer from 0 to 1000000"));
  }
}

}  // namespace
}  // namespace penstock::router
