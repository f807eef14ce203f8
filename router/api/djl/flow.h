// From a parsed body to one run.
#pragma once

#include <memory>
#include <string_view>

#include "router/api/context.h"
#include "router/http/application.h"

namespace penstock::router::djl {

void Serve(ApiContext& context, std::string_view route, const HttpRequest& http,
           std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::djl
