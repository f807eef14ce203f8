#include "router/api/tgi/handlers.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

// Null instead of an empty text.
std::optional<std::string_view> OrNull(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return text;
}

// "int8" of "cpu/avx512/int8/kv-int8", "int4" of "cpu/avx2/int4", "fp8" of "cuda/fp8"; nothing of
// "cpu/avx512/kv-int8".
std::string_view QuantizationOf(std::string_view backend) {
  backend = backend.substr(0, backend.find("/kv-"));
  const std::string_view last = backend.substr(backend.rfind('/') + 1);
  return last == "int8" || last == "int4" || last == "fp8" ? last : std::string_view();
}

std::string_view TaskOf(const ModelFacts& facts) {
  if (!facts.vectors) return "generate";
  return facts.vectors->classifies ? "classify" : "embed";
}

}  // namespace

void Info(const ApiContext& context, Exchange& exchange, bool own_keys) {
  const ModelFacts facts = context.engine.Facts();
  const ApiOptions& options = context.options;
  std::string body = "{";
  json::AppendMembers(
      body, "model_id", OrNull(facts.model_id), "model_sha", OrNull(facts.model_sha),
      "model_pipeline_tag", nullptr, "max_concurrent_requests", options.max_concurrent_requests,
      "max_best_of", options.max_best_of, "max_stop_sequences", options.max_stop_sequences,
      "max_input_tokens", facts.max_input_tokens, "max_total_tokens", facts.max_total_tokens,
      "validation_workers", options.validation_workers, "max_client_batch_size",
      options.max_client_batch_size, "router", "penstock-router", "version",
      OrNull(options.version), "sha", nullptr, "docker_label", nullptr);
  if (own_keys) {
    json::AppendMembers(body, "model_dtype", OrNull(facts.dtype), "model_device_type",
                        OrNull(facts.device), "model_backend", OrNull(facts.backend), "quantize",
                        OrNull(QuantizationOf(facts.backend)), "max_batch_total_tokens",
                        facts.max_batch_total_tokens, "task", TaskOf(facts), "has_chat_template",
                        facts.has_chat_template);
  }
  body += '}';
  exchange.Respond(JsonResponse(std::move(body)));
}

void Models(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  const std::string name = context.engine.Facts().served_name;
  const auto model =
      json::ObjectText("id", name, "object", "model", "created", 0, "owned_by", name);
  exchange->Respond(JsonResponse("{\"object\":\"list\",\"data\":[" + model + "]}"));
}

void Health(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  context.engine.ProbeHealth([exchange = std::move(exchange)](const HealthReport& report) {
    if (report.state == router::Health::kReady) {
      exchange->Respond({200, "", {}, ""});
      return;
    }
    const std::string error = report.state == router::Health::kDraining ? "draining" : "unhealthy";
    HttpResponse response{503,
                          "application/json",
                          {{"retry-after", "2"}},
                          json::ObjectText("error", error, "error_type", "healthcheck")};
    response.failure = RequestFailure{NameOf(ApiErrorKind::kUnavailable),
                                      report.detail.empty() ? error : report.detail};
    exchange->Respond(std::move(response));
  });
}

}  // namespace penstock::router::tgi
