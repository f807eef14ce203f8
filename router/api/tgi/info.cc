#include "router/api/tgi/handlers.h"
#include "router/json/writer.h"

namespace penstock::router::tgi {
namespace {

void AppendText(std::string& out, std::string_view key, std::string_view value) {
  json::AppendString(out, key);
  out += ':';
  if (value.empty()) {
    out += "null";
  } else {
    json::AppendString(out, value);
  }
  out += ',';
}

void AppendCount(std::string& out, std::string_view key, std::uint64_t value) {
  json::AppendString(out, key);
  out += ':';
  json::AppendInteger(out, value);
  out += ',';
}

// "int8" of "cpu/avx512/int8" and "cpu/avx512/int8/kv-int8"; nothing of "cpu/avx512/kv-int8".
std::string_view QuantizationOf(std::string_view backend) {
  backend = backend.substr(0, backend.find("/kv-"));
  const std::size_t first = backend.find('/');
  const std::size_t second = first == backend.npos ? first : backend.find('/', first + 1);
  return second == backend.npos ? std::string_view() : backend.substr(second + 1);
}

}  // namespace

void Info(const ApiContext& context, Exchange& exchange, bool own_keys) {
  const ModelFacts facts = context.engine.Facts();
  const ApiOptions& options = context.options;
  std::string body = "{";
  AppendText(body, "model_id", facts.model_id);
  AppendText(body, "model_sha", facts.model_sha);
  AppendText(body, "model_pipeline_tag", "");
  AppendCount(body, "max_concurrent_requests", options.max_concurrent_requests);
  AppendCount(body, "max_best_of", options.max_best_of);
  AppendCount(body, "max_stop_sequences", options.max_stop_sequences);
  AppendCount(body, "max_input_tokens", facts.max_input_tokens);
  AppendCount(body, "max_total_tokens", facts.max_total_tokens);
  AppendCount(body, "validation_workers", options.validation_workers);
  AppendCount(body, "max_client_batch_size", options.max_client_batch_size);
  AppendText(body, "router", "penstock-router");
  AppendText(body, "version", options.version);
  AppendText(body, "sha", "");
  AppendText(body, "docker_label", "");
  if (own_keys) {
    AppendText(body, "model_dtype", facts.dtype);
    AppendText(body, "model_device_type", facts.device);
    AppendText(body, "model_backend", facts.backend);
    AppendText(body, "quantize", QuantizationOf(facts.backend));
    AppendCount(body, "max_batch_total_tokens", facts.max_batch_total_tokens);
  }
  body.back() = '}';
  exchange.Respond({200, "application/json", {}, std::move(body)});
}

void Models(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  const std::string name = context.engine.Facts().served_name;
  std::string body = "{\"object\":\"list\",\"data\":[{\"id\":";
  json::AppendString(body, name);
  body += ",\"object\":\"model\",\"created\":0,\"owned_by\":";
  json::AppendString(body, name);
  exchange->Respond({200, "application/json", {}, body + "}]}"});
}

void Health(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  context.engine.ProbeHealth([exchange = std::move(exchange)](const HealthReport& report) {
    if (report.state == router::Health::kReady) {
      exchange->Respond({200, "", {}, ""});
      return;
    }
    exchange->Respond({503,
                       "application/json",
                       {{"retry-after", "2"}},
                       "{\"error\":\"unhealthy\",\"error_type\":\"healthcheck\"}"});
  });
}

}  // namespace penstock::router::tgi
