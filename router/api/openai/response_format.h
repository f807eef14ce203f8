// `response_format` of a chat: OpenAI's shapes (`text`, `json_object`, `json_schema`), and TGI's
// (`json`, `json_object`, `json_schema`, `regex`, each with a `value`), which its clients send here
// too. A schema is enforced directly, not translated into a regular expression.
#pragma once

#include <variant>

#include "router/api/errors.h"
#include "router/engine.h"
#include "router/json/fields.h"

namespace penstock::router::openai {

// Without a grammar for `text`.
std::variant<Grammar, ApiError> LowerResponseFormat(const json::Raw& format);

}  // namespace penstock::router::openai
