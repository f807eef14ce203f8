#include <utility>

#include "router/api/tgi/generate/flow.h"
#include "router/api/tgi/handlers.h"

namespace penstock::router::tgi {

void Generate(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  Serve(context, {.route = "/generate", .mode = Mode::kPlain}, std::move(request),
        std::move(exchange));
}

}  // namespace penstock::router::tgi
