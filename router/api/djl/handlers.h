// The routes of DJL-Serving's LMI containers. One file per handler.
#pragma once

#include <memory>
#include <string_view>

#include "router/api/context.h"
#include "router/http/application.h"

namespace penstock::router::djl {

// POST /invocations, whosever body it is: DJL's, a chat, or TGI's compatible form. The body's own
// keys decide, then --api-default.
void Invocations(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
// POST /predictions/{model}[/{version}] and POST /models/{model}/invoke.
void Predictions(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);
void InvokeModel(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange);

enum class BodyKind { kDjl, kChat, kTgi };
// What the keys of a body say, `otherwise` when they do not say.
BodyKind KindOf(std::string_view body, BodyKind otherwise);

}  // namespace penstock::router::djl
