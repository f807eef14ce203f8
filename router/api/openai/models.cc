#include <string>
#include <utility>

#include "router/api/errors.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/utc_time.h"
#include "router/http/text.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

std::string ModelObject(const ApiContext& context) {
  const ModelFacts facts = context.engine.Facts();
  return json::ObjectText("id", facts.served_name, "object", "model", "created", context.started,
                          "owned_by", facts.served_name, "max_model_len", facts.max_total_tokens);
}

// The header tells Anthropic's clients.
bool IsAnthropic(const RequestHead& head) { return !head.Find("anthropic-version").empty(); }

std::string AnthropicModel(const ApiContext& context) {
  const ModelFacts facts = context.engine.Facts();
  return json::ObjectText("type", "model", "id", facts.served_name, "display_name",
                          facts.served_name, "created_at", UtcTime(context.started), "lifecycle",
                          "active", "max_input_tokens", facts.max_input_tokens, "max_tokens",
                          facts.max_total_tokens);
}

}  // namespace

void Models(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  if (IsAnthropic(request.head)) {
    const std::string id = context.engine.Facts().served_name;
    const std::string models = "[" + AnthropicModel(context) + "]";
    exchange->Respond(JsonResponse(json::ObjectText("data", json::Raw{models}, "has_more", false,
                                                    "first_id", id, "last_id", id)));
    return;
  }
  std::string body = "{\"object\":\"list\",\"data\":[" + ModelObject(context) + "]}";
  exchange->Respond(JsonResponse(std::move(body)));
}

void Model(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string id = PercentDecoded(std::string_view(request.head.path).substr(kPrefix.size()));
  const ModelFacts facts = context.engine.Facts();
  if (IsServedModel(facts, id)) {
    const bool anthropic = IsAnthropic(request.head);
    exchange->Respond(JsonResponse(anthropic ? AnthropicModel(context) : ModelObject(context)));
    return;
  }
  exchange->Respond(Errors().Response(ModelNotFound(facts, id)));
}

}  // namespace penstock::router::openai
