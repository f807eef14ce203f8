// What generate, generate_stream and / have in common.
#pragma once

#include <memory>
#include <string_view>

#include "router/api/context.h"
#include "router/api/tgi/lower.h"
#include "router/http/application.h"

namespace penstock::router::tgi {

struct Flow {
  std::string_view route;
  Mode mode = Mode::kPlain;
  bool compat = false;  // POST /: mode by the body, array answer, full text by default
};

void Serve(ApiContext& context, const Flow& flow, HttpRequest request,
           std::shared_ptr<Exchange> exchange);

}  // namespace penstock::router::tgi
