// Grammars of answers with calls, in llguidance's variant of Lark.
#pragma once

#include <string>

#include "router/answer/format.h"
#include "router/answer/special_tokens.h"
#include "router/answer/tool_set.h"

namespace penstock::router::answer {

// An answer that is one call, or with `parallel` at least one, and nothing else. The arguments
// follow the schemas of all tools. The format must have a call form.
std::string RequiredCallGrammar(const Format& format, const ToolSet& tools,
                                const SpecialTokens& special, bool parallel);

// Any text and calls. After the format's opening marker a call must follow: of a strict tool by its
// schema, of another one with free arguments. Where calls begin without a marker, only those of
// strict tools are held to their schema.
std::string StrictCallGrammar(const Format& format, const ToolSet& tools,
                              const SpecialTokens& special);

}  // namespace penstock::router::answer
