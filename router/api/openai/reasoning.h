// What a chat says about the reasoning of its answer.
#pragma once

#include <optional>
#include <variant>

#include "router/api/context.h"
#include "router/api/openai/request.h"
#include "router/engine.h"

namespace penstock::router::openai {

// Tokens that the reasoning may have: `thinking_budget`, or the variable of the template with this
// name. Absent: no bound.
std::variant<std::optional<std::uint32_t>, ApiError> ThinkingBudget(const ChatRequest& request);

// The reasoning before the answer. `calls`: only calls may follow it.
ReasoningRule ReasoningOf(const ApiContext& context, const ChatRequest& request,
                          std::optional<std::uint32_t> budget, bool calls);

}  // namespace penstock::router::openai
