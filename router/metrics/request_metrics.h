// What router/api counts of generation requests: outcomes, latencies, tokens, unknown keys.
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/request/time_kind.h"
#include "common/time.h"
#include "router/metrics/families.h"
#include "router/metrics/tgi_metrics.h"

namespace penstock::router {

class RequestMetrics {
 public:
  // `tgi` gets the same counts under its names, once it is set.
  RequestMetrics(Registry& registry, const std::unique_ptr<TgiMetrics>& tgi)
      : make_(registry), tgi_(tgi) {}

  // Each request that arrived ends in exactly one of succeeded, failed, cancelled.
  void Arrived(std::string_view route) {
    if (tgi_) tgi_->Arrived();
    requests_.Add({{"route", std::string(route)}}).Increment();
  }
  void Succeeded(std::string_view finish_reason) {
    if (tgi_) tgi_->Succeeded();
    success_.Add({{"finish_reason", std::string(finish_reason)}}).Increment();
  }
  void Failed(std::string_view kind) {
    if (tgi_) tgi_->Failed(kind);
    failure_.Add({{"kind", std::string(kind)}}).Increment();
  }
  // The client went away or was too slow.
  void Cancelled() {
    if (tgi_) tgi_->Failed("dropped");
    cancelled_.Increment();
  }
  void UnknownKeys(std::string_view dialect, std::uint64_t count) {
    if (count > 0) Add(unknown_keys_.Add({{"dialect", std::string(dialect)}}), count);
  }
  void FirstToken(Duration since_arrival) { Observe(first_token_, since_arrival); }
  void InterToken(Duration since_previous) { Observe(inter_token_, since_previous); }
  void QueueTime(Duration queued) { Observe(queue_time_, queued); }
  void TotalTime(Duration total) {
    if (tgi_) tgi_->TotalTime(total);
    Observe(duration_, total);
  }
  void Times(Duration validation, Duration queue, Duration inference, std::uint64_t generated) {
    if (tgi_) tgi_->Times(validation, queue, inference, generated);
  }
  void MaxNewTokens(std::uint64_t tokens) {
    if (tgi_) tgi_->MaxNewTokens(tokens);
  }
  // Totals and histograms. A request that ended early counts the tokens that it had computed.
  void Tokens(std::uint64_t prompt, std::uint64_t cached, std::uint64_t generated) {
    if (tgi_) tgi_->Tokens(prompt, generated);
    Add(prompt_total_, prompt);
    Add(cached_total_, cached);
    Add(generated_total_, generated);
    Observe(prompt_tokens_, prompt);
    Observe(generated_tokens_, generated);
  }
  // The whole time of a request, by kind.
  void TimeSpent(const std::array<Duration, kTimeKinds>& totals) {
    for (std::size_t i = 0; i < totals.size(); ++i) {
      if (totals[i] > Duration{0}) time_by_kind_[i]->Increment(Seconds(totals[i]));
    }
  }
  // A request for vectors that succeeded.
  void Vectors(std::uint64_t texts, std::uint64_t tokens) {
    Add(vector_texts_, texts);
    Add(prompt_total_, tokens);
    Observe(prompt_tokens_, tokens);
  }

 private:
  static std::array<Counter*, kTimeKinds> TimeCounters(Family<Counter>& family) {
    std::array<Counter*, kTimeKinds> counters{};
    for (std::size_t i = 0; i < kTimeKinds; ++i) {
      const auto kind = static_cast<TimeKind>(i);
      counters[i] = &family.Add({{"reason", std::string(TimeKindName(kind))}});
    }
    return counters;
  }
  static Buckets TokenBuckets() {
    Buckets bounds;
    for (int bound = 1; bound <= 131072; bound *= 2) bounds.push_back(bound);
    return bounds;
  }

  Families make_;
  const std::unique_ptr<TgiMetrics>& tgi_;
  Family<Counter>& requests_ =
      make_.Counters("penstock_requests_total", "Generation requests received, by route.", "route");
  Family<Counter>& success_ =
      make_.Counters("penstock_requests_success_total",
                     "Generation requests that succeeded, by finish reason.", "finish_reason");
  Family<Counter>& failure_ =
      make_.Counters("penstock_requests_failure_total",
                     "Generation requests that ended in an error, by kind.", "kind");
  Counter& cancelled_ =
      make_.OneCounter("penstock_requests_cancelled_total",
                       "Generation requests whose client went away or read too slowly.");
  Counter& vector_texts_ = make_.OneCounter(
      "penstock_vector_texts_total", "Texts and pairs of texts that were embedded or classified.");
  Family<Counter>& unknown_keys_ =
      make_.Counters("penstock_unknown_keys_total",
                     "Keys in request bodies that no dialect knows; they are ignored.", "dialect");
  const std::array<Counter*, kTimeKinds> time_by_kind_ = TimeCounters(make_.Counters(
      "penstock_request_time_seconds_total",
      "Time of requests that ended, from arrival to the last byte, by what it was spent on.",
      "reason"));
  Histogram& first_token_ = make_.OneHistogram(
      "penstock_time_to_first_token_seconds", "From arrival to the first token.", LatencyBuckets());
  Histogram& inter_token_ =
      make_.OneHistogram("penstock_inter_token_latency_seconds",
                         "Between one token and the next of a request.", InterTokenBuckets());
  Histogram& queue_time_ = make_.OneHistogram("penstock_request_queue_seconds",
                                              "From queued to the first plan.", LatencyBuckets());
  Histogram& duration_ = make_.OneHistogram("penstock_request_duration_seconds",
                                            "From arrival to the last token.", LatencyBuckets());
  Counter& prompt_total_ =
      make_.OneCounter("penstock_prompt_tokens_total", "Prompt tokens of all requests.");
  Counter& cached_total_ = make_.OneCounter("penstock_cached_prompt_tokens_total",
                                            "Prompt tokens found in the prefix cache.");
  Counter& generated_total_ =
      make_.OneCounter("penstock_generated_tokens_total", "Tokens generated.");
  Histogram& prompt_tokens_ = make_.OneHistogram("penstock_request_prompt_tokens",
                                                 "Prompt tokens per request.", TokenBuckets());
  Histogram& generated_tokens_ = make_.OneHistogram(
      "penstock_request_generated_tokens", "Generated tokens per request.", TokenBuckets());
};

}  // namespace penstock::router
