// <minimax:tool_call>
// <invoke name="get_weather">
// <parameter name="city">Paris</parameter>
// </invoke>
// </minimax:tool_call>
//
// MiniMax M1 writes JSON objects in lines between <tool_calls> and </tool_calls>.
#include "router/answer/bodies/tagged_body.h"
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::minimax {
namespace {

constexpr ReasoningMarkers kReasoning[] = {{"<think>", "</think>"}};

constexpr std::string_view kLinesOpeners[] = {"<tool_calls>"};
constexpr std::string_view kLinesClosers[] = {"</tool_calls>"};
constexpr std::string_view kLinesShown[] = {"<tool_calls>", "\"arguments\""};
constexpr Texts kLinesEvidence[] = {kLinesShown};

bool ReadLinesCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take(kLinesOpeners[0]) && ReadJsonCall(cursor, tools, header, kLinesClosers);
}

bool ReadNextLine(Cursor& cursor, const ToolSet& tools, Header& header) {
  return ReadJsonCall(cursor, tools, header, kLinesClosers);
}

constexpr ArgumentTags kTags = {.before_name = "<parameter name=\"",
                                .after_name = "\">",
                                .before_value = "",
                                .after_value = "</parameter>",
                                .end = "</invoke>",
                                .lines = true};
constexpr std::string_view kOpeners[] = {"<minimax:tool_call>"};
constexpr std::string_view kClosers[] = {"</minimax:tool_call>"};
constexpr std::string_view kShown[] = {"<minimax:tool_call>"};
constexpr Texts kEvidence[] = {kShown};

bool ReadInvoke(Cursor& cursor, const ToolSet& tools, Header& header) {
  cursor.SkipBlanks();
  if (!cursor.Take("<invoke name=\"")) return false;
  if (!cursor.TakeTool(tools, header.tool) || !cursor.Take("\">")) return false;
  header.body = MakeTaggedBody(kTags, *header.tool);
  return true;
}

bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take(kOpeners[0]) && ReadInvoke(cursor, tools, header);
}

}  // namespace

const Format kMiniMaxM1 = {.name = "minimax_m1",
                           .models = "MiniMax M1",
                           .evidence = kLinesEvidence,
                           .reasoning = kReasoning,
                           .openers = kLinesOpeners,
                           .header = ReadLinesCall,
                           .next_header = ReadNextLine,
                           .tail = ReadJsonTail,
                           .closers = kLinesClosers,
                           .call = {.section_begin = "<tool_calls>\n",
                                    .call_begin = "{\"name\": \"",
                                    .after_name = "\", \"arguments\": ",
                                    .call_end = "}",
                                    .separator = "\n",
                                    .section_end = "\n</tool_calls>"}};

const Format kMiniMaxM2 = {.name = "minimax_m2",
                           .models = "MiniMax M2",
                           .evidence = kEvidence,
                           .reasoning = kReasoning,
                           .openers = kOpeners,
                           .header = ReadCall,
                           .next_header = ReadInvoke,
                           .closers = kClosers,
                           .call = {.section_begin = "<minimax:tool_call>\n",
                                    .call_begin = "<invoke name=\"",
                                    .after_name = "\">\n",
                                    .arguments = ArgumentForm::kTags,
                                    .tags = &kTags,
                                    .separator = "\n",
                                    .section_end = "\n</minimax:tool_call>"}};

}  // namespace penstock::router::answer::minimax
