// [get_weather(city="Paris"), get_weather(city="Rome")]
//
// Gemma 3 writes the calls without brackets, in a block of code with the language tool_code.
#include "router/answer/bodies/literal_body.h"
#include "router/answer/formats/formats.h"

namespace penstock::router::answer::pythonic {
namespace {

bool ReadName(Cursor& cursor, const ToolSet& tools, Header& header, Texts ends) {
  cursor.SkipBlanks();
  if (!cursor.TakeTool(tools, header.tool) || !cursor.Take("(")) return false;
  header.body = MakePythonBody(ends);
  return true;
}

constexpr std::string_view kLlamaOpeners[] = {"<|python_start|>"};
constexpr std::string_view kLlamaLineOpeners[] = {"["};
constexpr std::string_view kLlamaEnds[] = {"<|python_end|>"};
constexpr std::string_view kLlamaClosers[] = {"]", "<|python_end|>"};
constexpr std::string_view kLlamaShown[] = {"<|header_start|>"};
constexpr std::string_view kPythonShown[] = {"[func_name1("};
constexpr Texts kLlamaEvidence[] = {kLlamaShown, kPythonShown};

bool ReadLlamaCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  cursor.Optional("<|python_start|>");
  return cursor.SkipBlanks() && cursor.Take("[") && ReadName(cursor, tools, header, kLlamaEnds);
}

bool ReadNextLlamaCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  return cursor.Take(",") && ReadName(cursor, tools, header, kLlamaEnds);
}

constexpr std::string_view kGemmaOpeners[] = {"```tool_code\n"};
constexpr std::string_view kGemmaEnds[] = {"```"};
constexpr std::string_view kGemmaShown[] = {"<start_of_turn>"};
constexpr Texts kGemmaEvidence[] = {kGemmaShown};

bool ReadGemmaCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  if (!cursor.Take(kGemmaOpeners[0])) return false;
  cursor.SkipBlanks();
  cursor.Optional("print(");
  cursor.Optional("[");
  return ReadName(cursor, tools, header, kGemmaEnds);
}

bool ReadNextGemmaCall(Cursor& cursor, const ToolSet& tools, Header& header) {
  cursor.Optional(",");
  cursor.SkipBlanks();
  cursor.Optional("print(");
  return ReadName(cursor, tools, header, kGemmaEnds);
}

// The parenthesis of print(, or the bracket of a list.
bool ReadGemmaTail(Cursor& cursor) { return cursor.Take(")") || cursor.Take("]"); }

}  // namespace

const Format kLlama4 = {.name = "llama4_pythonic",
                        .models = "Llama 4, and others that write Python calls",
                        .evidence = kLlamaEvidence,
                        .openers = kLlamaOpeners,
                        .line_openers = kLlamaLineOpeners,
                        .header = ReadLlamaCall,
                        .next_header = ReadNextLlamaCall,
                        .closers = kLlamaClosers,
                        .call = {.section_begin = "[",
                                 .after_name = "(",
                                 .arguments = ArgumentForm::kPython,
                                 .call_end = ")",
                                 .separator = ", ",
                                 .section_end = "]"}};

const Format kGemma3 = {.name = "gemma3",
                        .models = "Gemma 2 and 3",
                        .evidence = kGemmaEvidence,
                        .openers = kGemmaOpeners,
                        .header = ReadGemmaCall,
                        .next_header = ReadNextGemmaCall,
                        .tail = ReadGemmaTail,
                        .closers = kGemmaEnds,
                        .call = {.section_begin = "```tool_code\n",
                                 .after_name = "(",
                                 .arguments = ArgumentForm::kPython,
                                 .call_end = ")",
                                 .separator = "\n",
                                 .section_end = "\n```"}};

}  // namespace penstock::router::answer::pythonic
