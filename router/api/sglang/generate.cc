// The handler of generate.
#include <string>
#include <utility>
#include <variant>

#include "router/api/body.h"
#include "router/api/run.h"
#include "router/api/sglang/answer.h"
#include "router/api/sglang/dialect.h"
#include "router/api/sglang/lower.h"
#include "router/api/sglang/request.h"

namespace penstock::router::sglang {
namespace {

// The answer names what computed it.
std::string WeightVersion(const ApiContext& context) {
  std::string sha = context.engine.Facts().model_sha;
  return sha.empty() ? "default" : sha;
}

}  // namespace

void Generate(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  Parsed<Request> parsed = ParseGenerate(http.body);
  if (!Accept(context, "/generate", "sglang", Errors(), parsed, *exchange)) return;
  Request& request = parsed.request;
  const bool stream = request.stream;
  const ErrorFormat& errors = ErrorsAbout(request);
  auto lowered = Lower(context, std::move(request), http.head.request_id);
  if (const auto* error = std::get_if<ApiError>(&lowered)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  auto& [candidates, style] = std::get<Lowered>(lowered);
  style.weight_version = WeightVersion(context);
  Launch(context, http.head, errors, std::move(candidates), exchange,
         [&, to = exchange](const std::vector<GenerationRequest>&) {
           return MakeAnswer(to, std::move(style), stream);
         });
}

Handler GenerateOr(Handler otherwise) {
  return [otherwise = std::move(otherwise)](ApiContext& context, HttpRequest request,
                                            std::shared_ptr<Exchange> exchange) {
    if (IsGenerateBody(request.body)) {
      return Generate(context, std::move(request), std::move(exchange));
    }
    otherwise(context, std::move(request), std::move(exchange));
  };
}

}  // namespace penstock::router::sglang
