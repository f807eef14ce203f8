// What SGLang's clients ask beside generate.
#include <string>
#include <string_view>

#include "router/api/body.h"
#include "router/api/sglang/dialect.h"
#include "router/api/sglang/request.h"
#include "router/api/tgi/handlers.h"
#include "router/json/writer.h"

namespace penstock::router::sglang {
namespace {

// The members that describe the model in both answers.
std::string ModelMembers(const ModelFacts& facts) {
  std::string out = "{";
  json::AppendMembers(out, "model_path", facts.model_id, "served_model_name", facts.served_name,
                      "tokenizer_path", facts.model_id);
  return out;
}

std::string_view StatusOf(router::Health state) {
  // In the order of Health.
  constexpr std::string_view kNames[] = {"starting", "ready", "draining", "failed"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace

void ModelInfo(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  const ModelFacts facts = context.engine.Facts();
  std::string body = ModelMembers(facts);
  json::AppendMembers(body, "is_generation", !facts.vectors, "preferred_sampling_params", nullptr,
                      "weight_version", facts.model_sha.empty() ? "default" : facts.model_sha,
                      "has_image_understanding", false, "has_audio_understanding", false);
  exchange->Respond(JsonResponse(body + "}"));
}

void ServerInfo(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  const ModelFacts facts = context.engine.Facts();
  const SchedulerMetrics& queue = context.metrics.scheduler();
  const auto state = json::Object("running", queue.running(), "waiting", queue.waiting());
  std::string body = ModelMembers(facts);
  json::AppendMembers(body, "version", context.options.version, "status",
                      StatusOf(context.engine.CheckHealth().state), "context_length",
                      facts.max_total_tokens, "max_req_input_len", facts.max_input_tokens,
                      "max_total_num_tokens", facts.max_batch_total_tokens, "max_running_requests",
                      context.options.max_concurrent_requests, "internal_states",
                      [&state](std::string& out) {
                        out += '[';
                        state(out);
                        out += ']';
                      });
  exchange->Respond(JsonResponse(body + "}"));
}

void HealthGenerate(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  tgi::Health(context, std::move(request), std::move(exchange));
}

void FlushCache(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  context.engine.FlushPrefixes(request.head.tenant);
  exchange->Respond({200, "text/plain; charset=utf-8", {}, "Cache flushed.\n"});
}

void Concatenate(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const auto parsed = ParseConcatenate(request.body);
  if (parsed.error) {
    NameIgnoredKeys(context, parsed.unknown_keys, *exchange);
    return exchange->Respond(Errors().Response(*parsed.error));
  }
  if (!AcceptKeys(context, "sglang", Errors(), parsed.unknown_keys, *exchange)) return;
  exchange->Respond(JsonResponse(json::ObjectText("success", true)));
}

}  // namespace penstock::router::sglang
