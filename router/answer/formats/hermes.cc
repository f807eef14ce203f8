// <tool_call>
// {"name": "get_weather", "arguments": {"city": "Paris"}}
// </tool_call>
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::hermes {
namespace {

constexpr std::string_view kOpeners[] = {"<tool_call>"};
constexpr std::string_view kClosers[] = {"</tool_call>"};
constexpr std::string_view kShown[] = {"<tool_call>"};
constexpr Texts kEvidence[] = {kShown};
constexpr ReasoningMarkers kReasoning[] = {{"<think>", "</think>"}};

bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take(kOpeners[0]) && ReadJsonCall(cursor, tools, header, kClosers);
}

// Some outputs hold several objects between one pair of tags.
bool ReadNextCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return ReadJsonCall(cursor, tools, header, kClosers);
}

}  // namespace

const Format kHermes = {.name = "hermes",
                        .models = "Hermes, Qwen 2.5 and 3, QwQ, SmolLM3, Granite 4",
                        .evidence = kEvidence,
                        .reasoning = kReasoning,
                        .openers = kOpeners,
                        .header = ReadCall,
                        .next_header = ReadNextCall,
                        .tail = ReadJsonTail,
                        .closers = kClosers,
                        .call = {.call_begin = "<tool_call>\n{\"name\": \"",
                                 .after_name = "\", \"arguments\": ",
                                 .call_end = "}\n</tool_call>",
                                 .separator = "\n"}};

}  // namespace penstock::router::answer::hermes
