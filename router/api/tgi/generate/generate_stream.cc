#include <utility>

#include "router/api/tgi/generate/flow.h"
#include "router/api/tgi/handlers.h"

namespace penstock::router::tgi {

void GenerateStream(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  Serve(context, {.route = "/generate_stream", .mode = Mode::kStream}, std::move(request),
        std::move(exchange));
}

}  // namespace penstock::router::tgi
