#include "router/api/native/dialect.h"

#include <string>
#include <utility>

#include "router/api/docs/shapes.h"
#include "router/api/errors.h"
#include "router/api/metrics_page.h"
#include "router/json/writer.h"

namespace penstock::router::native {
namespace {

constexpr docs::Shape kShapes[] = {
    {"Status", "status:string detail?:string"},
    {"Wait", "short_of:string needed:integer available:integer behind?:integer"},
    {"Decision",
     "after_ms:number decision:string parts?:integer part?:integer short_of?:string "
     "needed?:integer available?:integer behind?:integer step?:integer"},
    {"PrefixMiss",
     "why:string relative?:integer relative_client_id?:string common_tokens?:integer "
     "relative_tenant?:string before?:string here?:string there?:string last_cached_ms?:number "
     "missed_ms?:number"},
    {"LedgerSpan",
     "kind:string after_ms:number ms:number behind?:integer behind_other_key?:boolean "
     "steps?:integer beside?:integer[] beside_left_out?:integer"},
    {"Ledger",
     "wall_ms:number closed:boolean now?:string most:string behind?:integer "
     "behind_other_key?:boolean totals_ms:object spans:LedgerSpan[] spans_left_out:integer"},
    {"RequestRecord",
     "request:integer client_id:string state:string prompt_tokens:integer "
     "generated_tokens:integer cached_tokens:integer preemptions:integer "
     "losses:integer waits_for?:Wait "
     "prefix_miss?:PrefixMiss ledger?:Ledger decisions:Decision[]"},
    {"CachedPrompt",
     "id:integer prompt:string tokens:integer blocks:integer group:integer uses:integer "
     "unused_seconds:number"},
    {"CachedPrompts", "cached_prompts:CachedPrompt[]"},
    {"Forgotten", "forgotten:integer"},
    {"Adapter",
     "name:string folder:string rank:integer bytes:integer requests:integer state:string"},
    {"Adapters", "adapters:Adapter[]"},
    {"LoadAdapter", "name:string folder:string"},
};

std::string_view StateName(router::Health state) {
  // In the order of Health.
  constexpr std::string_view kNames[] = {"starting", "ready", "draining", "failed"};
  return kNames[static_cast<std::size_t>(state)];
}

// 200 when requests would be served, else 503 with the reason.
void Ready(ApiContext& context, HttpRequest, std::shared_ptr<Exchange> exchange) {
  const HealthReport report = context.engine.CheckHealth();
  std::string body = "{";
  json::AppendMembers(body, "status", StateName(report.state));
  if (!report.detail.empty()) json::AppendMembers(body, "detail", report.detail);
  body += '}';
  HttpResponse response{200, "application/json", {}, std::move(body)};
  if (report.state != router::Health::kReady) {
    response.status = 503;
    const std::string why(report.detail.empty() ? StateName(report.state) : report.detail);
    response.failure = RequestFailure{NameOf(ApiErrorKind::kUnavailable), why};
    response.headers.push_back({"retry-after", "2"});
  }
  exchange->Respond(std::move(response));
}

void Live(ApiContext&, const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
  exchange->Respond(JsonResponse("{\"status\":\"live\"}"));
}

void MetricsPage(ApiContext& context, const HttpRequest& request,
                 const std::shared_ptr<Exchange>& exchange) {
  exchange->Respond(
      {200, "text/plain; version=0.0.4; charset=utf-8", {}, MetricsPageFor(context, request.head)});
}

std::vector<Route> Routes() {
  return {
      Probe("/live", Live, {.contents = {{{kJson, "Status"}}}}),
      Probe("/ready", Ready, {.contents = {{{kJson, "Status"}}}, .unavailable = "Status"}),
      Probe("/metrics", MetricsPage, {.contents = {{{"text/plain", "string"}}}}),
      Get("/requests/{id}", native::Request, {.contents = {{{kJson, "RequestRecord"}}}}),
      Get("/adapters", Adapters, {.contents = {{{kJson, "Adapters"}}}}),
      Post("/adapters", LoadAdapter, {.body = "LoadAdapter", .contents = {{{kJson, "Adapters"}}}}),
      Delete("/adapters/{id}", UnloadAdapter, {.contents = {{{kJson, "Adapters"}}}}),
      Get("/cached_prompts", CachedPrompts, {.contents = {{{kJson, "CachedPrompts"}}}}),
      Delete("/cached_prompts", ForgetCachedPrompts, {.contents = {{{kJson, "Forgotten"}}}}),
      Delete("/cached_prompts/{id}", ForgetCachedPrompts, {.contents = {{{kJson, "Forgotten"}}}}),
  };
}

class NativeDialect final : public Dialect {
 public:
  explicit NativeDialect(const Dialect& fallback) : Dialect(Routes()), fallback_(fallback) {}
  const ErrorFormat& Errors() const override { return fallback_.Errors(); }
  void AppendSchemas(std::string& out) const override { docs::AppendShapes(out, kShapes); }

 private:
  const Dialect& fallback_;
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect(const Dialect& fallback) {
  return std::make_unique<NativeDialect>(fallback);
}

}  // namespace penstock::router::native
