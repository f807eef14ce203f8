// <tool_call>get_weather
// <arg_key>city</arg_key>
// <arg_value>Paris</arg_value>
// </tool_call>
//
// GLM-4 before 4.5 writes the name in a line and the arguments as JSON in the next.
#include "router/answer/bodies/tagged_body.h"
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::glm {
namespace {

constexpr ArgumentTags kTags = {.before_name = "<arg_key>",
                                .after_name = "</arg_key>",
                                .before_value = "<arg_value>",
                                .after_value = "</arg_value>",
                                .end = "</tool_call>"};
constexpr std::string_view kOpeners[] = {"<tool_call>"};
constexpr std::string_view kSpecial[] = {"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
                                         "</tool_call>"};
constexpr std::string_view kShown[] = {"<tool_call>", "<arg_key>"};
constexpr Texts kEvidence[] = {kShown};
constexpr ReasoningMarkers kReasoning[] = {{"<think>", "</think>"}};

// An argument or the end must follow the name, so that a longer name is none.
bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  if (!cursor.Take(kOpeners[0])) return false;
  cursor.SkipBlanks();
  if (!cursor.TakeTool(tools, header.tool)) return false;
  cursor.SkipBlanks();
  if (!cursor.NextIs('<')) return false;
  header.body = MakeTaggedBody(kTags, *header.tool);
  return true;
}

constexpr std::string_view kLineOpeners[] = {""};
constexpr std::string_view kLineEnds[] = {"<|assistant|>"};
constexpr std::string_view kLineShown[] = {"[gMASK]", "<|observation|>"};
constexpr Texts kLineEvidence[] = {kLineShown};

bool ReadLineCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.TakeTool(tools, header.tool) && cursor.Take("\n") && cursor.SkipBlanks() &&
         ReadArguments(cursor, header, kLineEnds);
}

}  // namespace

const Format kGlm45 = {.name = "glm45",
                       .models = "GLM 4.5, 4.6 and 4.7",
                       .evidence = kEvidence,
                       .reasoning = kReasoning,
                       .openers = kOpeners,
                       .header = ReadCall,
                       .special = kSpecial,
                       .call = {.call_begin = kOpeners[0],
                                .after_name = "\n",
                                .arguments = ArgumentForm::kTags,
                                .tags = &kTags,
                                .separator = "\n"}};

const Format kGlm4 = {.name = "glm4",
                      .models = "GLM-4 and GLM-Z1",
                      .evidence = kLineEvidence,
                      .reasoning = kReasoning,
                      .line_openers = kLineOpeners,
                      .header = ReadLineCall,
                      .closers = kLineEnds,
                      .dropped = kLineEnds,
                      .call = {.after_name = "\n", .separator = "\n"}};

}  // namespace penstock::router::answer::glm
