// <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary
// to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>
//
// Text for the user is in the channel `final`, or in `commentary` without a recipient (`to=`).
#include "router/answer/formats/formats.h"
#include "router/answer/formats/json_call.h"

namespace penstock::router::answer::gpt_oss {
namespace {

constexpr std::string_view kOpeners[] = {
    "<|channel|>commentary to=", "<|channel|>analysis to=", "<|start|>assistant to="};
constexpr std::string_view kLineOpeners[] = {"to=functions."};
constexpr std::string_view kEnds[] = {"<|call|>", "<|end|>", "<|return|>", "<|start|>"};
constexpr std::string_view kClosers[] = {"<|call|>", "<|end|>", "<|return|>"};
constexpr std::string_view kDropped[] = {"<|start|>assistant",
                                         "<|channel|>final<|message|>",
                                         "<|channel|>final <|constrain|>json<|message|>",
                                         "<|channel|>commentary<|message|>",
                                         "<|end|>",
                                         "<|return|>",
                                         "<|call|>"};
constexpr std::string_view kShown[] = {"<|channel|>", "<|message|>"};
constexpr Texts kEvidence[] = {kShown};

constexpr std::string_view kAnalysis = "<|channel|>analysis<|message|>";
constexpr ReasoningMarkers kReasoning[] = {
    {kAnalysis, "<|end|>", true},
    {kAnalysis, "<|return|>", true},
    {kAnalysis, "<|start|>assistant<|channel|>final<|message|>", true},
    {kAnalysis, "<|channel|>final<|message|>", true}};

bool ReadRecipient(Cursor& cursor, const ToolSet& tools, Header& header) {
  cursor.Optional("functions.");
  return cursor.TakeTool(tools, header.tool);
}

bool ReadChannel(Cursor& cursor) {
  cursor.SkipBlanks();
  return cursor.Take("<|channel|>") && (cursor.Take("commentary") || cursor.Take("analysis"));
}

// The recipient stands in the role or in the channel.
bool ReadCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  cursor.Optional("<|start|>assistant");
  cursor.SkipBlanks();
  if (cursor.Take("to=")) {
    if (!ReadRecipient(cursor, tools, header) || !ReadChannel(cursor)) return false;
  } else {
    if (!ReadChannel(cursor)) return false;
    cursor.SkipBlanks();
    if (!cursor.Take("to=") || !ReadRecipient(cursor, tools, header)) return false;
  }
  cursor.SkipBlanks();
  cursor.Optional("<|constrain|>");
  cursor.Optional("json");
  cursor.SkipBlanks();
  return cursor.Take("<|message|>") && cursor.SkipBlanks() && ReadArguments(cursor, header, kEnds);
}

}  // namespace

const Format kGptOss = {.name = "gpt_oss",
                        .models = "gpt-oss (harmony)",
                        .evidence = kEvidence,
                        .reasoning = kReasoning,
                        .answer_marker = "<|channel|>final<|message|>",
                        .openers = kOpeners,
                        .line_openers = kLineOpeners,
                        .header = ReadCall,
                        .closers = kClosers,
                        .dropped = kDropped,
                        .calls_end_reasoning = true,
                        .call = {.role = "<|start|>assistant",
                                 .call_begin = "<|channel|>commentary to=functions.",
                                 .after_name = " <|constrain|>json<|message|>",
                                 .single = true}};

}  // namespace penstock::router::answer::gpt_oss
