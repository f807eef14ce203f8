// The routes of text-generation-inference. One file per handler.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/http/application.h"

namespace penstock::router::tgi {

void Generate(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void GenerateStream(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// POST /: generate or stream by the body's `stream`; the plain answer is an array of one.
void Compat(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void Info(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::tgi
