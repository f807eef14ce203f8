// <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>
// {"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::kimi {
namespace {

constexpr std::string_view kSection = "<|tool_calls_section_begin|>";
constexpr std::string_view kBegin = "<|tool_call_begin|>";
constexpr std::string_view kOpeners[] = {kSection, kBegin};
constexpr std::string_view kArguments = "<|tool_call_argument_begin|>";
constexpr std::string_view kClosers[] = {"<|tool_call_end|>", "<|tool_calls_section_end|>"};
constexpr std::string_view kSpecial[] = {kArguments};
constexpr std::string_view kShown[] = {kSection};
constexpr Texts kEvidence[] = {kShown};
constexpr ReasoningMarkers kReasoning[] = {{"<think>", "</think>"}};
constexpr std::size_t kNumberBytes = 16;

bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  if (cursor.Take(kSection)) cursor.SkipBlanks();
  if (!cursor.Take(kBegin)) return false;
  cursor.SkipBlanks();
  cursor.Optional("functions.");
  if (!cursor.TakeTool(tools, header.tool)) return false;
  if (cursor.Take(":") && !cursor.TakeWord(kNumberBytes)) return false;
  cursor.SkipBlanks();
  return cursor.Take(kArguments) && cursor.SkipBlanks() && ReadArguments(cursor, header, kClosers);
}

}  // namespace

const Format kKimi = {.name = "kimi_k2",
                      .models = "Kimi K2",
                      .evidence = kEvidence,
                      .reasoning = kReasoning,
                      .openers = kOpeners,
                      .header = ReadCall,
                      .closers = kClosers,
                      .special = kSpecial,
                      .calls_end_reasoning = true,
                      .call = {.section_begin = kSection,
                               .call_begin = "<|tool_call_begin|>functions.",
                               .numbered = true,
                               .after_name = kArguments,
                               .call_end = kClosers[0],
                               .section_end = kClosers[1]},
                      .call_ids = CallIds::kNumbered};

}  // namespace penstock::router::answer::kimi
