#include <string>
#include <utility>

#include "router/api/errors.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/http/text.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

std::string ModelObject(const ApiContext& context) {
  const ModelFacts facts = context.engine.Facts();
  return json::ObjectText("id", facts.served_name, "object", "model", "created", context.started,
                          "owned_by", facts.served_name, "max_model_len", facts.max_total_tokens);
}

}  // namespace

void Models(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  std::string body = "{\"object\":\"list\",\"data\":[" + ModelObject(context) + "]}";
  exchange->Respond(JsonResponse(std::move(body)));
}

void Model(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string id = PercentDecoded(std::string_view(request.head.path).substr(kPrefix.size()));
  const ModelFacts facts = context.engine.Facts();
  if (IsServedModel(facts, id)) {
    exchange->Respond(JsonResponse(ModelObject(context)));
    return;
  }
  exchange->Respond(Errors().Response(ModelNotFound(facts, id)));
}

}  // namespace penstock::router::openai
