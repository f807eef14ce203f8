// What the formats have in common, and what each does with outputs that are not as they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "router/answer/reader.h"
#include "tests/unit/router/answer/read_answer.h"
#include "tests/unit/router/answer/transcripts.h"

namespace penstock::router::answer {
namespace {

Answer Read(std::string_view format, std::string_view text, std::string_view prompt_end = {}) {
  return testing::ReadAnswer(format, text, testing::SampleTools(), prompt_end);
}

TEST(Formats, NamesAreUniqueAndFound) {
  for (const Format* format : Formats()) EXPECT_EQ(FindFormat(format->name), format);
  EXPECT_EQ(FindFormat("other"), nullptr);
}

TEST(Formats, WithoutToolsCallsAreText) {
  constexpr std::string_view kText =
      "<tool_call>\n{\"name\": \"get\", \"arguments\": {}}\n</tool_call>";
  EXPECT_EQ(testing::ReadAnswer("hermes", kText, nullptr).text, kText);
}

TEST(Formats, AnUnknownToolIsText) {
  constexpr std::string_view kText =
      "<tool_call>\n{\"name\": \"get_wea\", \"arguments\": {}}\n</tool_call>";
  EXPECT_EQ(Read("hermes", kText).text, kText);
  EXPECT_EQ(Read("mistral_v11", "[TOOL_CALLS]other[ARGS]{}").text, "[TOOL_CALLS]other[ARGS]{}");
  EXPECT_EQ(Read("llama4_pythonic", "[other(a=1)]").text, "[other(a=1)]");
}

TEST(Formats, AHeaderThatIsCutIsText) {
  EXPECT_EQ(Read("hermes", "Hi.\n<tool_call>\n{\"name\": \"ge").text,
            "Hi.\n<tool_call>\n{\"name\": \"ge");
}

TEST(Formats, WhatBreaksInTheArgumentsStaysRaw) {
  EXPECT_EQ(
      Read("hermes", "<tool_call>{\"name\": \"get\", \"arguments\": {\"city\":,}}</tool_call>")
          .calls,
      (std::vector<Call>{{"get", "{\"city\":,}"}}));
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"get\", \"arguments\": {\"a\": 1</tool_call>"),
            (Answer{"", "", {{"get", "{\"a\": 1"}}}));
  EXPECT_EQ(Read("llama4_pythonic", "[get(city=Paris)]").calls,
            (std::vector<Call>{{"get", "{\"city\": Paris)]"}}));
  EXPECT_EQ(Read("qwen3_coder",
                 "<function=get>\n<parameter=city>\nParis\n</parameter>\nor so"
                 "</function>")
                .calls,
            (std::vector<Call>{{"get", "{\"city\": \"Paris\"\nor so"}}));
}

TEST(Formats, ArgumentsMayComeBeforeTheName) {
  EXPECT_EQ(Read("llama3_json", "{\"parameters\": {\"city\": \"a\"}, \"name\": \"get\"}"),
            (Answer{"", "", {{"get", "{\"city\": \"a\"}"}}}));
}

TEST(Formats, ArgumentsMayBeAString) {
  EXPECT_EQ(
      Read("hermes",
           R"(<tool_call>{"name": "get", "arguments": "{\"city\": \"\ud83c\udf26\"}"}</tool_call>)")
          .calls,
      (std::vector<Call>{{"get", "{\"city\": \"🌦\"}"}}));
}

TEST(Formats, TypesOfXmlArgumentsComeFromTheSchema) {
  const auto call = [](std::string_view name, std::string_view value) {
    const std::string text = "<tool_call>get_weather\n<arg_key>" + std::string(name) +
                             "</arg_key>\n<arg_value>" + std::string(value) +
                             "</arg_value>\n</tool_call>";
    return Read("glm45", text).calls.at(0).arguments;
  };
  EXPECT_EQ(call("city", "5"), R"({"city": "5"})");
  EXPECT_EQ(call("days", "5"), R"({"days": 5})");
  EXPECT_EQ(call("days", "five"), R"({"days": "five"})");
  EXPECT_EQ(call("metric", "True"), R"({"metric": true})");
  EXPECT_EQ(call("places", "['a', None]"), R"({"places": ["a", null]})");
  EXPECT_EQ(call("note", "null"), R"({"note": null})");
  EXPECT_EQ(call("note", "5"), R"({"note": "5"})");
  EXPECT_EQ(call("other", "{\"a\":1}"), R"({"other": {"a":1}})");
  EXPECT_EQ(call("unknown", "None"), R"({"unknown": "None"})");
}

TEST(Formats, PythonValuesBecomeJson) {
  EXPECT_EQ(
      Read("llama4_pythonic",
           R"([get(city='it\'s', a=(1, .5), b={'k': """x"y""", 2: True}, c=None), get()])")
          .calls,
      (std::vector<Call>{
          {"get", R"({"city": "it's", "a": [1, 0.5], "b": {"k": "x\"y", "2": true}, "c": null})"},
          {"get", "{}"}}));
}

TEST(Formats, AMarkerOfReasoningInTheMiddleIsText) {
  EXPECT_EQ(Read("hermes", "Use <think> to think.").text, "Use <think> to think.");
}

TEST(Formats, ACallEndsTheReasoningOfKimi) {
  EXPECT_EQ(Read("kimi_k2",
                 "<think>Hm.<|tool_calls_section_begin|><|tool_call_begin|>functions.get:0"
                 "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"),
            (Answer{"", "Hm.", {{"get", "{}"}}}));
}

TEST(Formats, IdsOfCallsAreThoseThatTemplatesTake) {
  const std::string nine = MakeCallId(*FindFormat("mistral_v3"), "a", "get", 0);
  EXPECT_THAT(nine, ::testing::MatchesRegex("[0-9A-Za-z]{9}"));
  EXPECT_NE(nine, MakeCallId(*FindFormat("mistral_v3"), "a", "get", 1));
  EXPECT_EQ(MakeCallId(*FindFormat("kimi_k2"), "a", "get", 2), "functions.get:2");
  EXPECT_EQ(MakeCallId(*FindFormat("hermes"), "a", "get", 0).size(), 29u);
}

TEST(ParseTools, ErrorsSayWhatIsWrongWhere) {
  const auto error = [](std::string_view tools) {
    return std::string(ParseTools(tools).status().message());
  };
  EXPECT_EQ(error("{}"), " must be an array");
  EXPECT_EQ(error("[{\"type\":\"function\"}]"), "[0] must have a `function`");
  EXPECT_EQ(error(R"([{"type":"web_search"}])"),
            "[0].type must be \"function\". Given: \"web_search\"");
  EXPECT_EQ(error(R"([{"function":{"name":""}}])"),
            "[0].function.name must be a name that is not empty");
  EXPECT_EQ(error(R"([{"function":{"name":"a","parameters":5}}])"),
            "[0].function.parameters must be an object");
  EXPECT_EQ(error(R"([{"function":{"name":"a"}},{"function":{"name":"a"}}])"),
            "[1].function.name must be unique. Given twice: \"a\"");
}

TEST(Reader, CountsTokensOfReasoningAndDropsFurtherCalls) {
  Reader reader(*FindFormat("hermes"), {.tools = testing::SampleTools(), .parallel_calls = false});
  reader.Start("<|im_start|>assistant\n");
  Answer answer;
  for (const std::string_view token :
       {"<think>", "Hm", "", "é", "</think>", "Hi", "<tool_call>{\"name\": \"get\"}</tool_call>",
        "<tool_call>{\"name\": \"get\"}</tool_call>"}) {
    for (const Event& event : reader.Token(token)) answer.Add(event);
  }
  for (const Event& event : reader.End("")) answer.Add(event);
  EXPECT_EQ(answer, (Answer{"Hi",
                            "Hm"
                            "é",
                            {{"get", "{}"}}}));
  EXPECT_EQ(reader.reasoning_tokens(), 5u);
  EXPECT_EQ(reader.calls(), 1u);
}

}  // namespace
}  // namespace penstock::router::answer
