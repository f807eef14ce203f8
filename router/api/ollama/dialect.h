// Ollama's dialect: /api/chat, /api/generate, /api/show, /api/tags, /api/ps and /api/version.
#pragma once

#include <memory>
#include <string_view>

#include "router/api/context.h"
#include "router/api/dialect.h"

namespace penstock::router::ollama {

inline constexpr std::string_view kLines = "application/x-ndjson";

std::unique_ptr<const Dialect> MakeDialect();

// {"error": "…"}
const ErrorFormat& Errors();

void Chat(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Generate(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Show(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Tags(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Running(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);
void Version(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::ollama
