// What both OpenAI routes do with a parsed body.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "router/api/context.h"
#include "router/api/openai/answer.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/openai/request.h"
#include "router/http/application.h"

namespace penstock::router::openai {

// Takes permits and starts the run, or answers with the error.
void Launch(ApiContext& context, const Common& request, AnswerStyle style, Lowered lowered,
            const RequestHead& head, std::shared_ptr<Exchange> exchange);

template <class T>
bool Accepted(ApiContext& context, std::string_view route, const Parsed<T>& parsed,
              Exchange& exchange) {
  context.metrics.RequestArrived(route);
  context.metrics.UnknownKeys("openai", parsed.unknown_keys);
  if (!parsed.error) return true;
  RefuseRequest(context, exchange, Errors(), *parsed.error);
  return false;
}

}  // namespace penstock::router::openai
