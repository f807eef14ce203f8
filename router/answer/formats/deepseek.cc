// <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
// ```json
// {"city": "Paris"}
// ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// From version 3.1 on: <｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}. From
// version 3.2 on: tags with the type of each argument.
#include "router/answer/bodies/tagged_body.h"
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::deepseek {
namespace {

constexpr std::string_view kSection = "<｜tool▁calls▁begin｜>";
constexpr std::string_view kBegin = "<｜tool▁call▁begin｜>";
constexpr std::string_view kSeparator = "<｜tool▁sep｜>";
constexpr std::string_view kEnd = "<｜tool▁call▁end｜>";
constexpr std::string_view kOpeners[] = {kSection, kBegin};
constexpr std::string_view kClosers[] = {kEnd, "<｜tool▁calls▁end｜>"};
constexpr std::string_view kSpecial[] = {kSeparator};
constexpr std::string_view kFenced[] = {kBegin, "```json"};
constexpr std::string_view kPlain[] = {kBegin};
constexpr Texts kFencedEvidence[] = {kFenced};
constexpr Texts kPlainEvidence[] = {kPlain};
constexpr ReasoningMarkers kReasoning[] = {{"<think>", "</think>"}};

bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  if (cursor.Take(kSection)) cursor.SkipBlanks();
  if (!cursor.Take(kBegin)) return false;
  if (cursor.Take("function<｜tool▁sep｜>")) {
    if (!cursor.TakeTool(tools, header.tool)) return false;
    return cursor.SkipBlanks() && cursor.Take("```json") && cursor.SkipBlanks() &&
           ReadArguments(cursor, header, kClosers);
  }
  return cursor.TakeTool(tools, header.tool) && cursor.Take(kSeparator) && cursor.SkipBlanks() &&
         ReadArguments(cursor, header, kClosers);
}

bool ReadTail(Cursor& cursor) { return cursor.SkipBlanks() && cursor.Take("```"); }

constexpr ArgumentTags kTags = {.before_name = "<｜DSML｜parameter name=\"",
                                .after_name = "\"",
                                .before_value = "",
                                .after_value = "</｜DSML｜parameter>",
                                .end = "</｜DSML｜invoke>",
                                .names_type = true};
constexpr std::string_view kDsmlSpecial[] = {"｜DSML｜"};
constexpr std::string_view kDsmlOpeners[] = {"<｜DSML｜function_calls>"};
constexpr std::string_view kDsmlClosers[] = {"</｜DSML｜function_calls>"};
constexpr std::string_view kDsmlShown[] = {"｜DSML｜"};
constexpr Texts kDsmlEvidence[] = {kDsmlShown};

bool ReadInvoke(Cursor& cursor, const ToolSet& tools, Header& header) {
  cursor.SkipBlanks();
  if (!cursor.Take("<｜DSML｜invoke name=\"")) return false;
  if (!cursor.TakeTool(tools, header.tool) || !cursor.Take("\">")) return false;
  header.body = MakeTaggedBody(kTags, *header.tool);
  return true;
}

bool ReadDsmlCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take(kDsmlOpeners[0]) && ReadInvoke(cursor, tools, header);
}

}  // namespace

const Format kDeepSeekV3 = {.name = "deepseek_v3",
                            .models = "DeepSeek V3 and R1",
                            .evidence = kFencedEvidence,
                            .reasoning = kReasoning,
                            .openers = kOpeners,
                            .header = ReadCall,
                            .tail = ReadTail,
                            .closers = kClosers,
                            .special = kSpecial,
                            .call = {.section_begin = kSection,
                                     .call_begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                                     .after_name = "\n```json\n",
                                     .call_end = "\n```<｜tool▁call▁end｜>",
                                     .separator = "\n",
                                     .section_end = "<｜tool▁calls▁end｜>"},
                            .text_arguments = true};

const Format kDeepSeekV31 = {.name = "deepseek_v31",
                             .models = "DeepSeek V3.1",
                             .evidence = kPlainEvidence,
                             .reasoning = kReasoning,
                             .openers = kOpeners,
                             .header = ReadCall,
                             .tail = ReadTail,
                             .closers = kClosers,
                             .special = kSpecial,
                             .call = {.section_begin = kSection,
                                      .call_begin = kBegin,
                                      .after_name = kSeparator,
                                      .call_end = kEnd,
                                      .section_end = "<｜tool▁calls▁end｜>"}};

const Format kDeepSeekV32 = {.name = "deepseek_v32",
                             .models = "DeepSeek V3.2",
                             .evidence = kDsmlEvidence,
                             .reasoning = kReasoning,
                             .openers = kDsmlOpeners,
                             .header = ReadDsmlCall,
                             .next_header = ReadInvoke,
                             .closers = kDsmlClosers,
                             .special = kDsmlSpecial,
                             .call = {.section_begin = "<｜DSML｜function_calls>\n",
                                      .call_begin = "<｜DSML｜invoke name=\"",
                                      .after_name = "\">\n",
                                      .arguments = ArgumentForm::kTags,
                                      .tags = &kTags,
                                      .separator = "\n",
                                      .section_end = "\n</｜DSML｜function_calls>"}};

}  // namespace penstock::router::answer::deepseek
