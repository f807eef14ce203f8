#include "router/api/effective/handlers.h"

namespace penstock::router::effective {

void Stats(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond(
      {200, "application/json", {}, context.effective.ToJson(context.options.batching)});
}

void ResetStats(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  context.effective.Reset();
  exchange->Respond({200, "application/json", {}, "{\"reset\":true}"});
}

}  // namespace penstock::router::effective
