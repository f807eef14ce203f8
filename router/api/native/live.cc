#include "router/api/native/handlers.h"

namespace penstock::router::native {

void Live(ApiContext&, HttpRequest, std::shared_ptr<Exchange> exchange) {
  exchange->Respond({200, "application/json", {}, "{\"status\":\"live\"}"});
}

}  // namespace penstock::router::native
