#include "router/metrics/request_metrics.h"

#include <string>

#include "router/metrics/families.h"
#include "router/metrics/tgi_metrics.h"

namespace penstock::router {
namespace {

Buckets TokenBuckets() {
  Buckets bounds;
  for (int bound = 1; bound <= 131072; bound *= 2) bounds.push_back(bound);
  return bounds;
}

}  // namespace

struct RequestMetrics::Families {
  explicit Families(Registry& registry) : registry(registry) {}

  Registry& registry;
  Family<Counter>& requests =
      Counters(registry, "penstock_requests_total", "Generation requests received, by route.");
  Family<Counter>& success = Counters(registry, "penstock_requests_success_total",
                                      "Generation requests that succeeded, by finish reason.");
  Family<Counter>& failure = Counters(registry, "penstock_requests_failure_total",
                                      "Generation requests that ended in an error, by kind.");
  Counter& cancelled = Counters(registry, "penstock_requests_cancelled_total",
                                "Generation requests whose client went away or read too slowly.")
                           .Add({});
  Family<Counter>& unknown_keys =
      Counters(registry, "penstock_unknown_keys_total",
               "Keys in request bodies that no dialect knows; they are ignored.");
  Histogram& first_token = OneHistogram(registry, "penstock_time_to_first_token_seconds",
                                        "From arrival to the first token.", LatencyBuckets());
  Histogram& inter_token =
      OneHistogram(registry, "penstock_inter_token_latency_seconds",
                   "Between one token and the next of a request.", InterTokenBuckets());
  Histogram& queue_time = OneHistogram(registry, "penstock_request_queue_seconds",
                                       "From queued to the first plan.", LatencyBuckets());
  Histogram& duration = OneHistogram(registry, "penstock_request_duration_seconds",
                                     "From arrival to the last token.", LatencyBuckets());
  Counter& prompt_total =
      Counters(registry, "penstock_prompt_tokens_total", "Prompt tokens of all requests.").Add({});
  Counter& cached_total = Counters(registry, "penstock_cached_prompt_tokens_total",
                                   "Prompt tokens found in the prefix cache.")
                              .Add({});
  Counter& generated_total =
      Counters(registry, "penstock_generated_tokens_total", "Tokens generated.").Add({});
  Histogram& prompt_tokens = OneHistogram(registry, "penstock_request_prompt_tokens",
                                          "Prompt tokens per request.", TokenBuckets());
  Histogram& generated_tokens = OneHistogram(registry, "penstock_request_generated_tokens",
                                             "Generated tokens per request.", TokenBuckets());
};

RequestMetrics::RequestMetrics(Registry& registry, const std::unique_ptr<TgiMetrics>& tgi)
    : own_(std::make_unique<Families>(registry)), tgi_(tgi) {}
RequestMetrics::~RequestMetrics() = default;

void RequestMetrics::Arrived(std::string_view route) {
  if (tgi_) tgi_->Arrived();
  own_->requests.Add({{"route", std::string(route)}}).Increment();
}

void RequestMetrics::Succeeded(std::string_view finish_reason) {
  if (tgi_) tgi_->Succeeded();
  own_->success.Add({{"finish_reason", std::string(finish_reason)}}).Increment();
}

void RequestMetrics::Failed(std::string_view kind) {
  if (tgi_) tgi_->Failed(kind);
  own_->failure.Add({{"kind", std::string(kind)}}).Increment();
}

void RequestMetrics::Cancelled() {
  own_->cancelled.Increment();
  if (tgi_) tgi_->Failed("dropped");
}

void RequestMetrics::UnknownKeys(std::string_view dialect, std::uint64_t count) {
  if (count == 0) return;
  own_->unknown_keys.Add({{"dialect", std::string(dialect)}}).Increment(static_cast<double>(count));
}

void RequestMetrics::FirstToken(Duration since_arrival) {
  own_->first_token.Observe(Seconds(since_arrival));
}

void RequestMetrics::InterToken(Duration since_previous) {
  own_->inter_token.Observe(Seconds(since_previous));
}

void RequestMetrics::QueueTime(Duration queued) { own_->queue_time.Observe(Seconds(queued)); }
void RequestMetrics::TotalTime(Duration total) {
  own_->duration.Observe(Seconds(total));
  if (tgi_) tgi_->Duration(total);
}

void RequestMetrics::Times(Duration validation, Duration queue, Duration inference,
                           std::uint64_t generated) {
  if (tgi_) tgi_->Times(validation, queue, inference, generated);
}

void RequestMetrics::MaxNewTokens(std::uint64_t tokens) {
  if (tgi_) tgi_->MaxNewTokens(tokens);
}

void RequestMetrics::Tokens(std::uint64_t prompt, std::uint64_t cached, std::uint64_t generated) {
  if (tgi_) tgi_->Tokens(prompt, generated);
  own_->prompt_total.Increment(static_cast<double>(prompt));
  own_->cached_total.Increment(static_cast<double>(cached));
  own_->generated_total.Increment(static_cast<double>(generated));
  own_->prompt_tokens.Observe(static_cast<double>(prompt));
  own_->generated_tokens.Observe(static_cast<double>(generated));
}

}  // namespace penstock::router
