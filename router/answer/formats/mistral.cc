// [TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "9Ae3bDc2F"}]
//
// From version 11 on: [TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::mistral {
namespace {

constexpr std::string_view kMarker = "[TOOL_CALLS]";
constexpr std::size_t kIdBytes = 16;

constexpr std::string_view kOpeners[] = {kMarker};
constexpr std::string_view kEnds[] = {kMarker};
constexpr std::string_view kListClosers[] = {"]"};
constexpr std::string_view kSpecial[] = {"[ARGS]", "[CALL_ID]"};
constexpr ReasoningMarkers kReasoning[] = {{"[THINK]", "[/THINK]"}, {"<think>", "</think>"}};

constexpr std::string_view kShown[] = {kMarker};
constexpr std::string_view kNamedShown[] = {kMarker, "[ARGS]"};
constexpr Texts kEvidence[] = {kShown};
constexpr Texts kNamedEvidence[] = {kNamedShown};

// NAME[CALL_ID]ID[ARGS]{…. Some models leave out [ARGS].
bool ReadNamed(Cursor& cursor, const ToolSet& tools, Header& header) {
  if (!cursor.TakeTool(tools, header.tool)) return false;
  if (cursor.Take("[CALL_ID]") && !cursor.TakeWord(kIdBytes)) return false;
  cursor.Optional("[ARGS]");
  return cursor.SkipBlanks() && ReadArguments(cursor, header, kEnds);
}

bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  if (!cursor.Take(kMarker)) return false;
  cursor.SkipBlanks();
  if (cursor.Take("[")) return ReadJsonCall(cursor, tools, header, kEnds);
  if (cursor.NextIs('{')) return ReadJsonCall(cursor, tools, header, kEnds);
  return ReadNamed(cursor, tools, header);
}

bool ReadNextInList(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take(",") && ReadJsonCall(cursor, tools, header, kEnds);
}

}  // namespace

const Format kMistral = {.name = "mistral_v3",
                         .models = "Mistral and Mixtral with tokenizers v3 and v7",
                         .evidence = kEvidence,
                         .reasoning = kReasoning,
                         .openers = kOpeners,
                         .header = ReadCall,
                         .next_header = ReadNextInList,
                         .tail = ReadJsonTail,
                         .closers = kListClosers,
                         .call = {.section_begin = "[TOOL_CALLS] [",
                                  .call_begin = "{\"name\": \"",
                                  .after_name = "\", \"arguments\": ",
                                  .call_end = "}",
                                  .separator = ", ",
                                  .section_end = "]"},
                         .call_ids = CallIds::kNine};

const Format kMistralNamed = {.name = "mistral_v11",
                              .models = "Mistral, Magistral and Devstral with tokenizers from v11",
                              .evidence = kNamedEvidence,
                              .reasoning = kReasoning,
                              .openers = kOpeners,
                              .header = ReadCall,
                              .next_header = ReadNextInList,
                              .tail = ReadJsonTail,
                              .closers = kListClosers,
                              .special = kSpecial,
                              .call = {.call_begin = kMarker, .after_name = "[ARGS]"},
                              .call_ids = CallIds::kNine};

}  // namespace penstock::router::answer::mistral
