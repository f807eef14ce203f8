// <|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>
#include "router/answer/bodies/literal_body.h"
#include "router/answer/formats/formats.h"

namespace penstock::router::answer::gemma {
namespace {

bool ReadObject(Cursor& cursor, const ToolSet& tools, Header& header, std::string_view quote,
                Texts ends) {
  cursor.SkipBlanks();
  if (!cursor.Take("call:") || !cursor.TakeTool(tools, header.tool)) return false;
  if (!cursor.NextIs('{')) return false;
  header.body = MakeObjectBody(quote, ends);
  return true;
}

constexpr std::string_view kOpeners[] = {"<|tool_call>"};
constexpr std::string_view kClosers[] = {"<tool_call|>"};
constexpr std::string_view kSpecial[] = {"<|\"|>"};
constexpr std::string_view kShown[] = {"<|tool_call>"};
constexpr Texts kEvidence[] = {kShown};
constexpr ReasoningMarkers kReasoning[] = {{"<|channel>thought", "<channel|>", true}};

bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take(kOpeners[0]) && ReadObject(cursor, tools, header, kSpecial[0], kClosers);
}

constexpr std::string_view kFunctionOpeners[] = {"<start_function_call>"};
constexpr std::string_view kFunctionClosers[] = {"<end_function_call>"};
constexpr std::string_view kFunctionSpecial[] = {"<escape>"};
constexpr std::string_view kFunctionShown[] = {"<start_function_call>"};
constexpr Texts kFunctionEvidence[] = {kFunctionShown};

bool ReadFunctionCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take(kFunctionOpeners[0]) &&
         ReadObject(cursor, tools, header, kFunctionSpecial[0], kFunctionClosers);
}

}  // namespace

const Format kGemma4 = {.name = "gemma4",
                        .models = "Gemma 4",
                        .evidence = kEvidence,
                        .reasoning = kReasoning,
                        .openers = kOpeners,
                        .header = ReadCall,
                        .closers = kClosers,
                        .special = kSpecial,
                        .call = {.call_begin = "<|tool_call>call:",
                                 .arguments = ArgumentForm::kObject,
                                 .quote = kSpecial[0],
                                 .call_end = "<tool_call|>"}};

const Format kFunctionGemma = {.name = "functiongemma",
                               .models = "FunctionGemma",
                               .evidence = kFunctionEvidence,
                               .openers = kFunctionOpeners,
                               .header = ReadFunctionCall,
                               .closers = kFunctionClosers,
                               .special = kFunctionSpecial,
                               .call = {.call_begin = "<start_function_call>call:",
                                        .arguments = ArgumentForm::kObject,
                                        .quote = kFunctionSpecial[0],
                                        .call_end = "<end_function_call>"}};

}  // namespace penstock::router::answer::gemma
