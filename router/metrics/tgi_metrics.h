// The metrics of text-generation-inference, so that its dashboards and alerts work: the same events
// under its names, buckets and labels. What TGI counts twice is counted once. Thread-safe.
#pragma once

#include <prometheus/summary.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/time.h"
#include "router/metrics/families.h"

namespace penstock::router {

class TgiMetrics {
 public:
  // Histograms of lengths have 100 buckets up to these.
  TgiMetrics(Registry& registry, std::uint32_t max_input_tokens, std::uint32_t max_total_tokens,
             std::uint32_t block_size)
      : make_(registry),
        registry_(registry),
        block_size_(block_size),
        max_input_tokens_(max_input_tokens),
        max_total_tokens_(max_total_tokens) {}

  void Arrived() { count_.Increment(); }
  void Succeeded() { success_.Increment(); }
  // `err`: validation, overloaded, generation, incomplete, dropped, …
  void Failed(std::string_view err) { failure_.Add({{"err", std::string(err)}}).Increment(); }
  void TotalTime(Duration total) { Observe(duration_, total); }
  void Times(Duration validation, Duration queue, Duration inference, std::uint64_t generated) {
    Observe(validation_, validation);
    Observe(queue_, queue);
    Observe(inference_, inference);
    const auto tokens = static_cast<double>(std::max<std::uint64_t>(1, generated));
    per_token_.Observe(Seconds(inference) / tokens);
  }
  void Tokens(std::uint64_t prompt, std::uint64_t generated) {
    Observe(input_length_, prompt);
    Observe(generated_tokens_, generated);
  }
  // Drafts that a step accepted for a sequence; not called without speculation.
  void Skipped(std::uint64_t tokens) { skipped_.Observe(static_cast<double>(tokens)); }
  void MaxNewTokens(std::uint64_t tokens) { Observe(max_new_tokens_, tokens); }
  void Queue(std::uint64_t waiting, std::uint64_t running) {
    Set(queue_size_, waiting);
    Set(batch_size_, running);
  }
  void ReservedBlocks(std::uint64_t blocks) { Set(batch_tokens_, blocks * block_size_); }
  void Step(Duration duration, std::uint64_t decode_rows, std::uint64_t prefill_tokens) {
    Method& method = prefill_tokens > 0 ? prefill_ : decode_;
    method.count.Increment();
    method.success.Increment();
    Observe(method.duration, duration);
    Observe(method.forward, duration);
    if (decode_rows > 0) Observe(next_size_, decode_rows);
    // A prefill step that also decodes adds requests to a running batch.
    if (prefill_tokens > 0 && decode_rows > 0) concat_.Increment();
  }

 private:
  static Buckets DurationBuckets() {
    Buckets bounds;
    double bound = 0.00015;
    for (int i = 0; i < 35; ++i, bound *= 1.5) bounds.push_back(bound);
    return bounds;
  }
  // `count` buckets of equal width up to `most`.
  static Buckets EvenBuckets(int count, std::uint32_t most) {
    Buckets bounds;
    for (int i = 1; i <= count; ++i)
      bounds.push_back(std::max(1u, most) / static_cast<double>(count) * i);
    return bounds;
  }

  Counter& CounterOf(const char* name, const prometheus::Labels& labels = {}) const {
    return make_.Counters(name, "As in TGI.").Add(labels);
  }
  Gauge& GaugeOf(const char* name) const { return make_.OneGauge(name, "As in TGI."); }
  Histogram& TimeOf(const char* name, const prometheus::Labels& labels = {}) const {
    return make_.Histograms(name, "As in TGI.").Add(labels, DurationBuckets());
  }
  Histogram& LengthOf(const char* name, std::uint32_t most) const {
    return make_.OneHistogram(name, "As in TGI.", EvenBuckets(100, most));
  }

  // The metrics of one kind of step.
  struct Method {
    Counter& count;
    Counter& success;
    Counter& failure;  // stays 0: a step that fails loses its group
    Histogram& duration;
    Histogram& forward;
    Histogram& decode;  // these two stay empty: the shard neither decodes text nor filters
    Histogram& filter;
  };
  Method MethodOf(const char* name) const {
    const prometheus::Labels labels = {{"method", name}};
    return {CounterOf("tgi_batch_inference_count", labels),
            CounterOf("tgi_batch_inference_success", labels),
            CounterOf("tgi_batch_inference_failure", labels),
            TimeOf("tgi_batch_inference_duration", labels),
            TimeOf("tgi_batch_forward_duration", labels),
            TimeOf("tgi_batch_decode_duration", labels),
            TimeOf("tgi_batch_filter_duration", labels)};
  }

  const Families make_;
  Registry& registry_;
  const std::uint32_t block_size_;
  const std::uint32_t max_input_tokens_;
  const std::uint32_t max_total_tokens_;
  Counter& count_ = CounterOf("tgi_request_count");
  Counter& success_ = CounterOf("tgi_request_success");
  Family<Counter>& failure_ = make_.Counters("tgi_request_failure", "As in TGI.");
  Histogram& duration_ = TimeOf("tgi_request_duration");
  Histogram& validation_ = TimeOf("tgi_request_validation_duration");
  Histogram& queue_ = TimeOf("tgi_request_queue_duration");
  Histogram& inference_ = TimeOf("tgi_request_inference_duration");
  Histogram& per_token_ = TimeOf("tgi_request_mean_time_per_token_duration");
  Histogram& input_length_ = LengthOf("tgi_request_input_length", max_input_tokens_);
  Histogram& max_new_tokens_ = LengthOf("tgi_request_max_new_tokens", max_total_tokens_);
  Histogram& generated_tokens_ = LengthOf("tgi_request_generated_tokens", max_total_tokens_);
  prometheus::Summary& skipped_ =
      prometheus::BuildSummary()
          .Name("tgi_request_skipped_tokens")
          .Help("As in TGI.")
          .Register(registry_)
          .Add({}, prometheus::Summary::Quantiles{{0.5, 0.05}, {0.9, 0.01}, {0.99, 0.001}});
  Gauge& queue_size_ = GaugeOf("tgi_queue_size");
  Gauge& batch_size_ = GaugeOf("tgi_batch_current_size");
  Gauge& batch_tokens_ = GaugeOf("tgi_batch_current_max_tokens");
  Histogram& next_size_ =
      make_.OneHistogram("tgi_batch_next_size", "As in TGI.", EvenBuckets(1024, 1024));
  Counter& concat_ = CounterOf("tgi_batch_concat", {{"reason", "chunking"}});
  Histogram& concat_duration_ = TimeOf("tgi_batch_concat_duration", {{"method", "decode"}});
  Method prefill_ = MethodOf("prefill");
  Method decode_ = MethodOf("decode");
};

}  // namespace penstock::router
