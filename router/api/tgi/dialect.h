// The dialect of text-generation-inference.
#pragma once

#include <memory>
#include <string>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::tgi {

// TGI's own routes, for a server with other dialects. Answers have keys that TGI does not have.
// `console`: browsers get the console on `/`, else the page about the routes.
std::unique_ptr<const Dialect> MakeDialect(bool console);

// TGI's dialect of a server that replaces TGI's router. It adds TGI's OpenAI and SageMaker routes,
// shows only the facts that TGI shows, and refuses as TGI's HTTP framework does, on every route.
std::unique_ptr<const Dialect> MakeStandInDialect();

// POST /invocations: a generation, a chat or a completion, by its body. `own_keys`: keys that TGI
// does not have are read.
void Invocations(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange,
                 bool own_keys);

// {"error", "error_type"}, or plain text where TGI's HTTP framework answers.
const ErrorFormat& Errors();

// The message with the prefix that TGI gives to errors of its kind.
std::string TgiMessage(const ApiError& error);

// The JSON schemas of all its routes, members of an object. Those of bodies are written from the
// tables that read them.
void AppendSchemas(std::string& out);

}  // namespace penstock::router::tgi
