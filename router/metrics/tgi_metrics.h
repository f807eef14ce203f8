// The metrics of text-generation-inference, so that its dashboards and alerts work: the same events
// under its names, buckets and labels. What TGI counts twice is counted once. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/time.h"
#include "router/metrics/families.h"

namespace penstock::router {

class TgiMetrics {
 public:
  // Histograms of lengths have 100 buckets up to the two lengths. `tgi_buckets`: that of batch
  // sizes has a bucket for each size, as in TGI.
  TgiMetrics(Registry& registry, std::uint32_t max_input_tokens, std::uint32_t max_total_tokens,
             std::uint32_t block_size, bool tgi_buckets)
      : make_(registry),
        block_size_(block_size),
        max_input_tokens_(max_input_tokens),
        max_total_tokens_(max_total_tokens),
        tgi_buckets_(tgi_buckets) {}

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

  static Buckets PowersOfTwo() {
    Buckets bounds;
    for (int bound = 1; bound <= 1024; bound *= 2) bounds.push_back(bound);
    return bounds;
  }

  Histogram& TimeOf(const char* name, const char* help) const {
    return make_.OneHistogram(name, help, DurationBuckets());
  }
  Histogram& LengthOf(const char* name, std::uint32_t most, const char* help) const {
    return make_.OneHistogram(name, help, EvenBuckets(100, most));
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
    const Buckets buckets = DurationBuckets();
    return {inference_count_.Add(labels),           inference_success_.Add(labels),
            inference_failure_.Add(labels),         inference_duration_.Add(labels, buckets),
            forward_duration_.Add(labels, buckets), decode_duration_.Add(labels, buckets),
            filter_duration_.Add(labels, buckets)};
  }

  const Families make_;
  const std::uint32_t block_size_;
  const std::uint32_t max_input_tokens_;
  const std::uint32_t max_total_tokens_;
  const bool tgi_buckets_;
  Counter& count_ = make_.OneCounter("tgi_request_count", "Generation requests received.");
  Counter& success_ =
      make_.OneCounter("tgi_request_success", "Generation requests that succeeded.");
  Family<Counter>& failure_ = make_.Counters(
      "tgi_request_failure", "Generation requests that ended in an error, by kind (err).", "err");
  Histogram& duration_ =
      TimeOf("tgi_request_duration", "Seconds from arrival to the last token of a request.");
  Histogram& validation_ = TimeOf("tgi_request_validation_duration",
                                  "Seconds that checking and tokenizing a request took.");
  Histogram& queue_ =
      TimeOf("tgi_request_queue_duration", "Seconds from queued to the first plan of a request.");
  Histogram& inference_ = TimeOf("tgi_request_inference_duration",
                                 "Seconds from the first plan to the last token of a request.");
  Histogram& per_token_ = TimeOf("tgi_request_mean_time_per_token_duration",
                                 "Inference seconds by generated tokens of a request.");
  Histogram& input_length_ =
      LengthOf("tgi_request_input_length", max_input_tokens_, "Prompt tokens per request.");
  Histogram& max_new_tokens_ =
      LengthOf("tgi_request_max_new_tokens", max_total_tokens_, "Tokens that a request asked for.");
  Histogram& generated_tokens_ =
      LengthOf("tgi_request_generated_tokens", max_total_tokens_, "Generated tokens per request.");
  prometheus::Summary& skipped_ =
      make_
          .Summaries("tgi_request_skipped_tokens",
                     "With --speculate: drafts accepted for a sequence in a step.")
          .Add({}, prometheus::Summary::Quantiles{{0.5, 0.05}, {0.9, 0.01}, {0.99, 0.001}});
  Gauge& queue_size_ = make_.OneGauge("tgi_queue_size", "Requests waiting for admission.");
  Gauge& batch_size_ = make_.OneGauge("tgi_batch_current_size", "Requests being computed.");
  Gauge& batch_tokens_ = make_.OneGauge("tgi_batch_current_max_tokens",
                                        "Tokens that the KV blocks in use have room for.");
  Histogram& next_size_ =
      make_.OneHistogram("tgi_batch_next_size", "Decode rows of a step.",
                         tgi_buckets_ ? EvenBuckets(1024, 1024) : PowersOfTwo());
  Counter& concat_ =
      make_
          .Counters("tgi_batch_concat",
                    "Steps that add requests to a running batch; the reason is always chunking.",
                    "reason")
          .Add({{"reason", "chunking"}});
  Histogram& concat_duration_ =
      make_
          .Histograms("tgi_batch_concat_duration",
                      "Always empty: adding requests to a batch takes no step of its own.",
                      "method")
          .Add({{"method", "decode"}}, DurationBuckets());
  Family<Counter>& inference_count_ = make_.Counters(
      "tgi_batch_inference_count", "Steps, by method: prefill if any row is a prompt's.", "method");
  Family<Counter>& inference_success_ =
      make_.Counters("tgi_batch_inference_success", "Steps that succeeded, by method.", "method");
  Family<Counter>& inference_failure_ =
      make_.Counters("tgi_batch_inference_failure",
                     "Always 0: a step that fails loses its replica group.", "method");
  Family<Histogram>& inference_duration_ =
      make_.Histograms("tgi_batch_inference_duration",
                       "Seconds from sending a plan to its result, by method.", "method");
  Family<Histogram>& forward_duration_ = make_.Histograms(
      "tgi_batch_forward_duration", "The same seconds as tgi_batch_inference_duration.", "method");
  Family<Histogram>& decode_duration_ =
      make_.Histograms("tgi_batch_decode_duration",
                       "Always empty: the router decodes text, outside of steps.", "method");
  Family<Histogram>& filter_duration_ = make_.Histograms(
      "tgi_batch_filter_duration", "Always empty: no step filters a batch.", "method");
  Method prefill_ = MethodOf("prefill");
  Method decode_ = MethodOf("decode");
};

}  // namespace penstock::router
