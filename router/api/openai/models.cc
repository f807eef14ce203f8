#include <string>
#include <utility>
#include <vector>

#include "router/api/adapters.h"
#include "router/api/errors.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/utc_time.h"
#include "router/http/text.h"
#include "router/json/writer.h"

namespace penstock::router::openai {
namespace {

// The model, or an adapter of it.
std::string ModelObject(const ApiContext& context, const std::string& name) {
  const ModelFacts facts = context.engine.Facts();
  std::string out = "{";
  json::AppendMembers(out, "id", name, "object", "model", "created", context.started, "owned_by",
                      facts.served_name, "max_model_len", facts.max_total_tokens);
  if (name != facts.served_name) json::AppendMembers(out, "parent", facts.served_name);
  return out + "}";
}

// The header tells Anthropic's clients.
bool IsAnthropic(const RequestHead& head) { return !head.Find("anthropic-version").empty(); }

std::string AnthropicModel(const ApiContext& context, const std::string& name) {
  const ModelFacts facts = context.engine.Facts();
  return json::ObjectText("type", "model", "id", name, "display_name", name, "created_at",
                          UtcTime(context.started), "lifecycle", "active", "max_input_tokens",
                          facts.max_input_tokens, "max_tokens", facts.max_total_tokens);
}

// The model, then its adapters.
std::vector<std::string> Names(const ApiContext& context) {
  std::vector<std::string> names = {context.engine.Facts().served_name};
  for (const AdapterInfo& adapter : context.engine.Adapters()) {
    if (!adapter.unloading) names.push_back(adapter.name);
  }
  return names;
}

}  // namespace

void Models(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const std::vector<std::string> names = Names(context);
  const bool anthropic = IsAnthropic(request.head);
  std::string models = "[";
  for (const std::string& name : names) {
    if (models.size() > 1) models += ',';
    models += anthropic ? AnthropicModel(context, name) : ModelObject(context, name);
  }
  models += ']';
  if (anthropic) {
    exchange->Respond(
        JsonResponse(json::ObjectText("data", json::Raw{models}, "has_more", false, "first_id",
                                      names.front(), "last_id", names.back())));
    return;
  }
  exchange->Respond(JsonResponse(json::ObjectText("object", "list", "data", json::Raw{models})));
}

void Model(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string id = PercentDecoded(std::string_view(request.head.path).substr(kPrefix.size()));
  const ModelFacts facts = context.engine.Facts();
  if (IsServedModel(facts, id) || AdapterNamed(context.engine, id)) {
    const std::string name = ShownModel(context.engine, id);
    exchange->Respond(JsonResponse(IsAnthropic(request.head) ? AnthropicModel(context, name)
                                                             : ModelObject(context, name)));
    return;
  }
  exchange->Respond(Errors().Response(ModelNotFound(facts, id, context.engine.Adapters())));
}

}  // namespace penstock::router::openai
