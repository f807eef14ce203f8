// Defects that the trackers of other servers list. Each test names its issue or pull request.
#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "tests/unit/router/answer/read_answer.h"

namespace penstock::router::answer {
namespace {

using Calls = std::vector<Call>;

std::shared_ptr<const ToolSet> Tools() {
  constexpr std::string_view kTools =
      R"([{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",
      "properties":{"city":{"type":"string"},"days":{"type":"integer"},"list":{"type":"array"}}}}},
      {"type":"function","function":{"name":"now","parameters":{"type":"object",
      "properties":{}}}},
      {"type":"function","function":{"name":"add-two","parameters":{"type":"object",
      "properties":{"a":{"type":"number"},"b":{"type":"number"}}}}}])";
  return std::make_shared<const ToolSet>(ParseTools(kTools).value());
}

Answer Read(std::string_view format, std::string_view text, std::string_view prompt_end = {}) {
  return testing::ReadAnswer(format, text, Tools(), prompt_end);
}

// vllm-project/vllm#28806, #21301: the empty arguments of a tool without parameters are not sent.
TEST(FieldDefects, EmptyArgumentsAreSent) {
  constexpr std::string_view kText =
      "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  EXPECT_EQ(Read("hermes", kText).calls, (Calls{{"now", "{}"}}));
}

// vllm-project/vllm#9693: a call without arguments gives None in a stream.
TEST(FieldDefects, MissingArgumentsAreAnEmptyObject) {
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}</tool_call>").calls,
            (Calls{{"now", "{}"}}));
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\", \"arguments\": null}</tool_call>").calls,
            (Calls{{"now", "{}"}}));
}

// vllm-project/vllm#10395: brackets that the partial parser closed differ from those that come.
TEST(FieldDefects, NestedBracketsAreKept) {
  constexpr std::string_view kArguments = R"({"city": "}]{", "list": [{"a": [1, {"b": "\"}"}]}]})";
  const std::string text =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + std::string(kArguments) +
      "}\n</tool_call>";
  EXPECT_EQ(Read("hermes", text).calls, (Calls{{"get_weather", std::string(kArguments)}}));
}

// ggml-org/llama.cpp#18183: JSON in the text without a tag counts as a call of Hermes.
TEST(FieldDefects, JsonWithoutATagIsText) {
  constexpr std::string_view kText = "{\"name\": \"now\", \"arguments\": {}}";
  EXPECT_EQ(Read("hermes", kText), (Answer{std::string(kText), "", {}}));
}

// noonghunna/club-3090#72, vllm-project/vllm#22975: text that mentions <tool_call> is never sent.
TEST(FieldDefects, MentionedMarkersAreText) {
  constexpr std::string_view kText = "Write <tool_call> and then <function=name>, as told.";
  EXPECT_EQ(Read("qwen3_coder", kText).text, kText);
  EXPECT_EQ(Read("hermes", kText).text, kText);
}

// vllm-project/vllm#30439: arguments of Qwen 3 Coder come only when the call is complete.
TEST(FieldDefects, XmlArgumentsAreStreamed) {
  Scanner scanner(*FindFormat("qwen3_coder"), {.tools = Tools()});
  std::vector<Event> events;
  scanner.Feed("<tool_call>\n<function=get_weather>\n<parameter=city>\nPar", events);
  Answer answer;
  for (const Event& event : events) answer.Add(event);
  EXPECT_EQ(answer.calls, (Calls{{"get_weather", "{\"city\": \"Par"}}));
}

// noonghunna/club-3090#145: blanks between reasoning and calls become content.
TEST(FieldDefects, BlanksBetweenReasoningAndCallsAreNoContent) {
  constexpr std::string_view kText =
      "<think>\nHm.\n</think>\n\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n";
  EXPECT_EQ(Read("qwen3_coder", kText), (Answer{"", "Hm.", {{"now", "{}"}}}));
}

// The model leaves out the outer tag (known of Qwen 3 Coder; ggml-org/llama.cpp#15012).
TEST(FieldDefects, TheOuterTagMayBeMissing) {
  constexpr std::string_view kText = "<function=now>\n</function>\n</tool_call>";
  EXPECT_EQ(Read("qwen3_coder", kText), (Answer{"", "", {{"now", "{}"}}}));
}

// sgl-project/sglang#23363, #20878: names with '-' are missed; long arguments are dropped.
TEST(FieldDefects, KimiNamesMayHaveHyphens) {
  const std::string arguments = "{\"a\": 1, \"b\": " + std::string(5000, '2') + "}";
  const std::string text =
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.add-two:3"
      "<|tool_call_argument_begin|>" +
      arguments + "<|tool_call_end|><|tool_calls_section_end|>";
  EXPECT_EQ(Read("kimi_k2", text), (Answer{"", "", {{"add-two", arguments}}}));
}

// sgl-project/sglang#35563: DeepSeek's calls are lost if the output comes in two pieces.
TEST(FieldDefects, TwoPiecesHaveAllCallsOfDeepSeek) {
  constexpr std::string_view kText =
      "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n"
      "<｜DSML｜invoke name=\"get_weather\">\n"
      "<｜DSML｜parameter name=\"days\" string=\"false\">-7</｜DSML｜parameter>\n"
      "</｜DSML｜invoke>\n</｜DSML｜function_calls>";
  for (std::size_t cut = 0; cut <= kText.size(); ++cut) {
    Scanner scanner(*FindFormat("deepseek_v32"), {.tools = Tools()});
    std::vector<Event> events;
    scanner.Feed(kText.substr(0, cut), events);
    scanner.Feed(kText.substr(cut), events);
    scanner.Finish(events);
    Answer answer;
    for (const Event& event : events) answer.Add(event);
    ASSERT_EQ(answer.calls, (Calls{{"now", "{}"}, {"get_weather", "{\"days\": -7}"}})) << cut;
  }
}

// sgl-project/sglang#18236: streamed arguments of DeepSeek V3.1 are {}.
TEST(FieldDefects, DeepSeekArgumentsAreStreamed) {
  constexpr std::string_view kText =
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"上海\"}"
      "<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
  EXPECT_EQ(Read("deepseek_v31", kText).calls, (Calls{{"get_weather", "{\"city\": \"上海\"}"}}));
}

// lmstudio-ai/lmstudio-bug-tracker#942: no blank before <|constrain|>, and the output ends inside
// the call.
TEST(FieldDefects, HarmonyCallsThatAreCutStayCalls) {
  constexpr std::string_view kText =
      "<|start|>assistant<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>"
      "{\"city\":{\"a\":1}";
  EXPECT_EQ(Read("gpt_oss", kText).calls, (Calls{{"get_weather", "{\"city\":{\"a\":1}"}}));
}

// ggml-org/llama.cpp#15181: the recipient stands in the role, before the channel.
TEST(FieldDefects, HarmonyRecipientInTheRole) {
  constexpr std::string_view kText =
      "<|start|>assistant to=functions.now<|channel|>commentary <|constrain|>json<|message|>{}";
  EXPECT_EQ(Read("gpt_oss", kText).calls, (Calls{{"now", "{}"}}));
}

// ggml-org/llama.cpp#12379: the server ends when arguments repeat the key of the name.
TEST(FieldDefects, ArgumentsMayHaveAName) {
  constexpr std::string_view kText =
      "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"name\": \"home_page\"";
  EXPECT_EQ(Read("hermes", kText).calls, (Calls{{"get_weather", "{\"name\": \"home_page\""}}));
}

// lmstudio-ai/lmstudio-bug-tracker#1592: calls are searched inside of reasoning.
TEST(FieldDefects, ReasoningMayMentionCallsAndTags) {
  constexpr std::string_view kText =
      "<think>Some write <function=now>, others <tool_call> or <thought>.</think>Done.";
  EXPECT_EQ(Read("qwen3_coder", kText),
            (Answer{"Done.", "Some write <function=now>, others <tool_call> or <thought>.", {}}));
}

// vllm-project/vllm#22507, #35349: the template opens the reasoning, so the output has no <think>.
TEST(FieldDefects, ThePromptMayOpenTheReasoning) {
  EXPECT_EQ(Read("hermes", "Hm.\n</think>\n\nHi.", "<|im_start|>assistant\n<think>\n"),
            (Answer{"Hi.", "Hm.", {}}));
  EXPECT_EQ(Read("minimax_m2", "Hm.</think>Hi.", "]~b]ai\n<think>\n"), (Answer{"Hi.", "Hm.", {}}));
}

// vllm-project/vllm#19017: with thinking disabled the answer counts as reasoning.
TEST(FieldDefects, DisabledThinkingHasNoReasoning) {
  constexpr std::string_view kPrompt = "<|im_start|>assistant\n<think>\n\n</think>\n\n";
  EXPECT_EQ(Read("hermes", "<tool_call>{\"name\": \"now\"}</tool_call>", kPrompt),
            (Answer{"", "", {{"now", "{}"}}}));
}

// anomalyco/opencode#6486: empty reasoning gives parts that clients do not expect.
TEST(FieldDefects, EmptyReasoningGivesNoEvent) {
  Scanner scanner(*FindFormat("glm45"), {.tools = Tools()});
  std::vector<Event> events;
  scanner.Feed("<think></think>\nHi", events);
  scanner.Finish(events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(std::get<TextDelta>(events[0]).text, "Hi");
}

// vllm-project/vllm#48318, #11097: parallel calls of Mistral become one.
TEST(FieldDefects, ParallelCallsOfMistralAreSeparate) {
  constexpr std::string_view kText =
      "I will help.[TOOL_CALLS]add-two{\"a\": 3.5, \"b\": 4}[TOOL_CALLS]now{}";
  EXPECT_EQ(Read("mistral_v11", kText),
            (Answer{"I will help.", "", {{"add-two", "{\"a\": 3.5, \"b\": 4}"}, {"now", "{}"}}}));
}

// vllm-project/vllm#13622: integers in the arguments of Mistral break the stream.
TEST(FieldDefects, MistralArgumentsMayBeNumbers) {
  constexpr std::string_view kText =
      R"([TOOL_CALLS] [{"name": "get_weather", "arguments": {"days": 12}, "id": "9Ae3bDc2F"}])";
  EXPECT_EQ(Read("mistral_v3", kText), (Answer{"", "", {{"get_weather", "{\"days\": 12}"}}}));
}

// vllm-project/vllm#48975: text after a call of Mistral becomes part of the arguments.
TEST(FieldDefects, MistralArgumentsEndAtTheirClosingBrace) {
  constexpr std::string_view kText =
      "[TOOL_CALLS]get_weather{\"city\":\"San Francisco\"}Estimating the weather...";
  EXPECT_EQ(
      Read("mistral_v11", kText),
      (Answer{"Estimating the weather...", "", {{"get_weather", R"({"city":"San Francisco"})"}}}));
}

// vllm-project/vllm#56263: an answer that is not streamed loses the text after a call.
TEST(FieldDefects, TextAfterACallIsKept) {
  constexpr std::string_view kText =
      "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\nIt is late.";
  EXPECT_EQ(Read("hermes", kText), (Answer{"It is late.", "", {{"now", "{}"}}}));
}

// vllm-project/vllm#22917: pythonic calls that follow text are given as text.
TEST(FieldDefects, PythonicCallsMayFollowText) {
  constexpr std::string_view kText = "I need the time.\n\n[now(), get_weather(city=\"Dublin\")]";
  EXPECT_EQ(
      Read("llama4_pythonic", kText),
      (Answer{"I need the time.", "", {{"now", "{}"}, {"get_weather", "{\"city\": \"Dublin\"}"}}}));
}

// vllm-project/vllm#55195: a marker inside a delta of several tokens is not recognised.
TEST(FieldDefects, OneDeltaMayHoldReasoningAndItsMarkers) {
  Scanner scanner(*FindFormat("hermes"), {.tools = Tools()});
  std::vector<Event> events;
  scanner.Feed("<think>Hm.</think>Hi and", events);
  Answer answer;
  for (const Event& event : events) answer.Add(event);
  EXPECT_EQ(answer, (Answer{"Hi and", "Hm.", {}})) << "the text after the marker is sent at once";
}

// ml-explore/mlx-lm#1448, waybarrios/vllm-mlx#631: text after a call, or a quote before it, loses
// the call.
TEST(FieldDefects, TextAroundMistralCallsIsKept) {
  constexpr std::string_view kText =
      "The column is \"id.\n[TOOL_CALLS]now[ARGS]{}\n\nLet me search.";
  EXPECT_EQ(Read("mistral_v11", kText),
            (Answer{"The column is \"id.Let me search.", "", {{"now", "{}"}}}));
}

}  // namespace
}  // namespace penstock::router::answer
