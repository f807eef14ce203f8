// <|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris"}}
//
// Also without the tag, several with semicolons between them, and in the tag <function=NAME>.
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::llama3 {
namespace {

constexpr std::string_view kTag = "<|python_tag|>";
constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kOpeners[] = {kTag, kFunction};
constexpr std::string_view kLineOpeners[] = {"{"};
constexpr std::string_view kClosers[] = {"</function>"};
constexpr std::string_view kShown[] = {"<|start_header_id|>", "\"parameters\": "};
constexpr std::string_view kFunctionary[] = {"<function=", "</function>"};
constexpr Texts kEvidence[] = {kShown, kFunctionary};
constexpr ReasoningMarkers kReasoning[] = {{"<think>", "</think>"}};

bool ReadTagged(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.TakeTool(tools, header.tool) && cursor.Take(">") && cursor.SkipBlanks() &&
         ReadArguments(cursor, header, kClosers);
}

bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  if (cursor.Take(kFunction)) return ReadTagged(cursor, tools, header);
  return cursor.Optional(kTag) && ReadJsonCall(cursor, tools, header, kClosers);
}

bool ReadNextCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  if (!cursor.Take(";")) cursor.Optional(",");
  return ReadJsonCall(cursor, tools, header, kClosers);
}

}  // namespace

const Format kLlama3 = {.name = "llama3_json",
                        .models = "Llama 3.1, 3.2 and 3.3, Functionary 3.1",
                        .evidence = kEvidence,
                        .reasoning = kReasoning,
                        .openers = kOpeners,
                        .line_openers = kLineOpeners,
                        .header = ReadCall,
                        .next_header = ReadNextCall,
                        .tail = ReadJsonTail,
                        .closers = kClosers,
                        .call = {.call_begin = "{\"name\": \"",
                                 .after_name = "\", \"parameters\": ",
                                 .call_end = "}",
                                 .separator = "; "}};

}  // namespace penstock::router::answer::llama3
