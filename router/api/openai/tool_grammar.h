// The grammar that the tools of a chat ask for.
#pragma once

#include "router/api/context.h"
#include "router/api/openai/tools.h"
#include "router/engine.h"

namespace penstock::router::openai {

// A choice that requires a call: calls alone, one if it is of a named tool or `parallel` is false.
// Else, with strict tools: text and calls. No grammar in all other cases. Refusals of a schema name
// `tools[N].function.parameters`.
Grammar ToolGrammar(const ApiContext& context, const ToolChoice& choice, bool parallel);

}  // namespace penstock::router::openai
