// Puts the reasoning of an answer before its grammar: the Lark grammar `%reasoning {…}`, which
// text/src/grammar/reasoning.rs reads.
#pragma once

#include <string_view>

#include "common/plan/grammar.h"
#include "router/engine.h"

namespace penstock::router {

// `grammar` after reasoning by the rule. `prompt_end`: Prompt::end, which says whether the prompt
// has opened the reasoning, or closed it. The grammar stays as it is if there can be no reasoning.
// An empty one becomes a rule about the reasoning alone if that has a budget.
GrammarSpec AfterReasoning(GrammarSpec grammar, const ReasoningRule& rule,
                           std::string_view prompt_end);

}  // namespace penstock::router
