// A completion that has been parsed, whatever route it came by.
#pragma once

#include <memory>

#include "router/api/context.h"
#include "router/api/tgi/chat/completion_request.h"
#include "router/http/application.h"

namespace penstock::router::tgi {

void ServeCompletion(ApiContext& context, const RequestHead& head,
                     const CompletionRequest& completion, std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::tgi
