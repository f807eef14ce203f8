#include "router/api/openai/tool_grammar.h"

#include <string>

#include "router/answer/grammar/arguments.h"
#include "router/answer/grammar/call_grammar.h"

namespace penstock::router::openai {
namespace {

// A name of the grammar: all that it depends on beside the server's options.
std::string SourceOf(const ToolChoice& choice, bool parallel) {
  std::string source = !choice.required ? "strict calls" : parallel ? "calls" : "call";
  for (const answer::Tool& tool : choice.tools->tools()) {
    source += '\0' + tool.name + '\0' + (tool.strict ? 's' : 'f') + tool.parameters_json;
  }
  return source;
}

std::vector<Grammar::Part> PartsOf(const ToolChoice& choice) {
  std::vector<Grammar::Part> parts;
  for (const answer::Tool& tool : choice.tools->tools()) {
    if (!choice.required && !tool.strict) continue;
    parts.push_back({"tools[" + std::to_string(tool.index) + "].function.parameters",
                     {GrammarSpec::Kind::kJsonSchema, answer::SchemaOf(tool)}});
  }
  return parts;
}

}  // namespace

Grammar ToolGrammar(const ApiContext& context, const ToolChoice& choice, bool parallel) {
  if (!choice.NeedsGrammar()) return {};
  const bool many = parallel && !choice.named;
  const auto& options = context.options;
  Grammar grammar;
  grammar.source = SourceOf(choice, many);
  grammar.parts = PartsOf(choice);
  grammar.write = [&options, tools = choice.tools, required = choice.required,
                   many]() -> Grammar::Written {
    const answer::Format& format = *options.answer_format;
    return GrammarSpec{
        GrammarSpec::Kind::kLark,
        required ? answer::RequiredCallGrammar(format, *tools, options.special_tokens, many)
                 : answer::StrictCallGrammar(format, *tools, options.special_tokens)};
  };
  return grammar;
}

}  // namespace penstock::router::openai
