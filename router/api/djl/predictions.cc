// The handlers of all DJL's routes.
#include <string>
#include <string_view>
#include <utility>

#include "router/api/djl/answer.h"
#include "router/api/djl/dialect.h"
#include "router/api/djl/lower.h"
#include "router/api/djl/request.h"
#include "router/api/errors.h"
#include "router/api/run.h"
#include "router/http/text.h"

namespace penstock::router::djl {
namespace {

std::string_view LastPart(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool IsServed(const ModelFacts& facts, std::string_view name) {
  for (const std::string& known : {facts.served_name, facts.model_id}) {
    if (name == known || name == LastPart(known)) return true;
  }
  return false;
}

ApiError ModelNotFound(std::string_view name) {
  return {ApiErrorKind::kModelNotFound,
          "No model or workflow found with name: " + std::string(name.substr(0, 100)), ""};
}

namespace {

void ServeModel(ApiContext& context, const DjlOptions& options, std::string_view route,
                std::string_view model, const HttpRequest& request,
                std::shared_ptr<Exchange> exchange) {
  const std::string name = PercentDecoded(model);
  if (IsServed(context.engine.Facts(), name)) {
    return Serve(context, options, route, request, std::move(exchange));
  }
  context.metrics.requests().Arrived(route);
  RefuseRequest(context, *exchange, Errors(), ModelNotFound(name));
}

}  // namespace

void Serve(ApiContext& context, const DjlOptions& options, std::string_view route,
           const HttpRequest& http, std::shared_ptr<Exchange> exchange) {
  const Parsed<Request> parsed = ParseRequest(http.body);
  if (!Accept(context, route, "djl", Errors(), parsed, *exchange)) return;
  const Request& request = parsed.request;
  const auto formatter = FormatterOf(options, request);
  if (const auto* error = std::get_if<ApiError>(&formatter)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  auto lowered = Lower(context, options, request, http.head.request_id);
  if (auto* error = std::get_if<ApiError>(&lowered)) {
    return RefuseRequest(context, *exchange, Errors(), AsSent(std::move(*error), parsed.aliases));
  }
  Launch(context, http.head, Errors(), std::get<std::vector<GenerationRequest>>(std::move(lowered)),
         exchange, [&](auto&) {
           return MakeAnswer(exchange, StyleOf(options, request, std::get<Formatter>(formatter)));
         });
}

void Predictions(ApiContext& context, const DjlOptions& options, const HttpRequest& request,
                 std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/predictions/";
  const std::string& path = request.head.path;
  std::string_view model = std::string_view(path).substr(kPrefix.size());
  model = model.substr(0, model.find('/'));  // one version is served
  ServeModel(context, options, "/predictions/{id}", model, request, std::move(exchange));
}

void InvokeModel(ApiContext& context, const DjlOptions& options, const HttpRequest& request,
                 std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/models/";
  constexpr std::string_view kSuffix = "/invoke";
  const std::string& path = request.head.path;
  std::string_view model = std::string_view(path).substr(kPrefix.size());
  if (!model.ends_with(kSuffix)) {
    return exchange->Respond(
        Errors().Response({ApiErrorKind::kNotFound, "Requested resource is not found.", ""}));
  }
  model.remove_suffix(kSuffix.size());
  ServeModel(context, options, "/models/{id}", model, request, std::move(exchange));
}

}  // namespace penstock::router::djl
