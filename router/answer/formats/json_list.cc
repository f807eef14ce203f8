// <|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]
//
// Granite 3 writes this. Phi-4 adds <|/tool_call|> at the end. Other models begin with `functools`.
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::json_list {
namespace {

constexpr std::string_view kMarker = "<|tool_call|>";
constexpr std::string_view kGraniteOpeners[] = {kMarker, "<tool_call>"};
constexpr std::string_view kGraniteClosers[] = {"]", "</tool_call>"};
constexpr std::string_view kGraniteEnds[] = {"</tool_call>"};
constexpr std::string_view kGraniteDropped[] = {"<response>", "</response>"};
constexpr std::string_view kGraniteShown[] = {kMarker, "<|start_of_role|>"};
constexpr std::string_view kGraniteRoles[] = {"<|start_of_role|>"};
constexpr Texts kGraniteEvidence[] = {kGraniteShown, kGraniteRoles};
constexpr ReasoningMarkers kGraniteReasoning[] = {
    {"<think>", "</think>"},
    {"Here is my thought process:", "Here is my response:"},
    {"Here's my thought process:", "Here's my response:"}};

bool ReadList(Cursor& cursor, const ToolSet& tools, Header& header, Texts openers, Texts ends) {
  if (!cursor.TakeAny(openers)) return false;
  cursor.SkipBlanks();
  cursor.Optional("[");
  return ReadJsonCall(cursor, tools, header, ends);
}

bool ReadGraniteCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return ReadList(cursor, tools, header, kGraniteOpeners, kGraniteEnds);
}

constexpr std::string_view kPhiOpeners[] = {kMarker, "functools"};
constexpr std::string_view kPhiEnds[] = {"<|/tool_call|>"};
constexpr std::string_view kPhiClosers[] = {"]", "<|/tool_call|>"};
constexpr std::string_view kPhiShown[] = {"<|tool|>", "<|/tool|>"};
constexpr std::string_view kFunctools[] = {"functools["};
constexpr Texts kPhiEvidence[] = {kPhiShown, kFunctools};
constexpr ReasoningMarkers kPhiReasoning[] = {{"<think>", "</think>"}};

bool ReadPhiCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return ReadList(cursor, tools, header, kPhiOpeners, kPhiEnds);
}

bool ReadNextCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  cursor.Optional(",");
  return ReadJsonCall(cursor, tools, header, kPhiEnds);
}

}  // namespace

const Format kGranite = {.name = "granite",
                         .models = "Granite 3",
                         .evidence = kGraniteEvidence,
                         .reasoning = kGraniteReasoning,
                         .openers = kGraniteOpeners,
                         .header = ReadGraniteCall,
                         .next_header = ReadNextCall,
                         .tail = ReadJsonTail,
                         .closers = kGraniteClosers,
                         .dropped = kGraniteDropped,
                         .call = {.section_begin = "<|tool_call|>[",
                                  .call_begin = "{\"name\": \"",
                                  .after_name = "\", \"arguments\": ",
                                  .call_end = "}",
                                  .separator = ", ",
                                  .section_end = "]"}};

const Format kPhi4 = {.name = "phi4",
                      .models = "Phi-4, Firefunction",
                      .evidence = kPhiEvidence,
                      .reasoning = kPhiReasoning,
                      .openers = kPhiOpeners,
                      .header = ReadPhiCall,
                      .next_header = ReadNextCall,
                      .tail = ReadJsonTail,
                      .closers = kPhiClosers,
                      .call = {.section_begin = "<|tool_call|>[",
                               .call_begin = "{\"name\": \"",
                               .after_name = "\", \"arguments\": ",
                               .call_end = "}",
                               .separator = ", ",
                               .section_end = "]<|/tool_call|>"}};

}  // namespace penstock::router::answer::json_list
