#include "router/metrics/tgi_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>

#include <algorithm>
#include <string>

namespace penstock::router {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;
using Buckets = Histogram::BucketBoundaries;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Buckets DurationBuckets() {
  Buckets bounds;
  double bound = 0.00015;
  for (int i = 0; i < 35; ++i, bound *= 1.5) bounds.push_back(bound);
  return bounds;
}

Buckets LengthBuckets(std::uint32_t most) {
  Buckets bounds;
  for (int i = 1; i <= 100; ++i) bounds.push_back(std::max(1u, most) / 100.0 * i);
  return bounds;
}

Buckets BatchBuckets() {
  Buckets bounds;
  for (int i = 1; i <= 1024; ++i) bounds.push_back(i);
  return bounds;
}

using Labels = prometheus::Labels;

Counter& MakeCounter(Registry& registry, const char* name, const Labels& labels = {}) {
  return BuildCounter().Name(name).Help("As in TGI.").Register(registry).Add(labels);
}
Gauge& MakeGauge(Registry& registry, const char* name) {
  return BuildGauge().Name(name).Help("As in TGI.").Register(registry).Add({});
}
Histogram& MakeHistogram(Registry& registry, const char* name, const Buckets& buckets,
                         const Labels& labels = {}) {
  return BuildHistogram().Name(name).Help("As in TGI.").Register(registry).Add(labels, buckets);
}

// The metrics of one kind of step.
struct Method {
  Method(Registry& registry, const char* name)
      : labels{{"method", name}},
        count(MakeCounter(registry, "tgi_batch_inference_count", labels)),
        success(MakeCounter(registry, "tgi_batch_inference_success", labels)),
        failure(MakeCounter(registry, "tgi_batch_inference_failure", labels)),
        duration(
            MakeHistogram(registry, "tgi_batch_inference_duration", DurationBuckets(), labels)),
        forward(MakeHistogram(registry, "tgi_batch_forward_duration", DurationBuckets(), labels)),
        decode(MakeHistogram(registry, "tgi_batch_decode_duration", DurationBuckets(), labels)),
        filter(MakeHistogram(registry, "tgi_batch_filter_duration", DurationBuckets(), labels)) {}

  Labels labels;
  Counter& count;
  Counter& success;
  Counter& failure;  // stays 0: a step that fails loses its group
  Histogram& duration;
  Histogram& forward;
  Histogram& decode;  // these two stay empty: the shard neither decodes text nor filters
  Histogram& filter;
};

}  // namespace

struct TgiMetrics::Impl {
  Impl(Registry& r, std::uint32_t max_input_tokens, std::uint32_t max_total_tokens)
      : registry(r),
        input_length(MakeHistogram(r, "tgi_request_input_length", LengthBuckets(max_input_tokens))),
        max_new_tokens(
            MakeHistogram(r, "tgi_request_max_new_tokens", LengthBuckets(max_total_tokens))),
        generated_tokens(
            MakeHistogram(r, "tgi_request_generated_tokens", LengthBuckets(max_total_tokens))) {}

  Histogram& Time(const char* name) { return MakeHistogram(registry, name, DurationBuckets()); }

  Registry& registry;
  Counter& count = MakeCounter(registry, "tgi_request_count");
  Counter& success = MakeCounter(registry, "tgi_request_success");
  prometheus::Family<Counter>& failure =
      BuildCounter().Name("tgi_request_failure").Help("As in TGI.").Register(registry);
  Histogram& duration = Time("tgi_request_duration");
  Histogram& validation = Time("tgi_request_validation_duration");
  Histogram& queue = Time("tgi_request_queue_duration");
  Histogram& inference = Time("tgi_request_inference_duration");
  Histogram& per_token = Time("tgi_request_mean_time_per_token_duration");
  Histogram& input_length;
  Histogram& max_new_tokens;
  Histogram& generated_tokens;
  prometheus::Summary& skipped =
      prometheus::BuildSummary()
          .Name("tgi_request_skipped_tokens")
          .Help("As in TGI.")
          .Register(registry)
          .Add({}, prometheus::Summary::Quantiles{{0.5, 0.05}, {0.9, 0.01}, {0.99, 0.001}});
  Gauge& queue_size = MakeGauge(registry, "tgi_queue_size");
  Gauge& batch_size = MakeGauge(registry, "tgi_batch_current_size");
  Gauge& batch_tokens = MakeGauge(registry, "tgi_batch_current_max_tokens");
  Histogram& next_size = MakeHistogram(registry, "tgi_batch_next_size", BatchBuckets());
  Counter& concat = MakeCounter(registry, "tgi_batch_concat", {{"reason", "chunking"}});
  Histogram& concat_duration = MakeHistogram(registry, "tgi_batch_concat_duration",
                                             DurationBuckets(), {{"method", "decode"}});
  Method prefill{registry, "prefill"};
  Method decode{registry, "decode"};
};

TgiMetrics::TgiMetrics(Registry& registry, std::uint32_t max_input_tokens,
                       std::uint32_t max_total_tokens, std::uint32_t block_size)
    : block_size_(block_size),
      impl_(std::make_unique<Impl>(registry, max_input_tokens, max_total_tokens)) {}
TgiMetrics::~TgiMetrics() = default;

void TgiMetrics::Arrived() { impl_->count.Increment(); }
void TgiMetrics::Succeeded() { impl_->success.Increment(); }
void TgiMetrics::Failed(std::string_view err) {
  impl_->failure.Add({{"err", std::string(err)}}).Increment();
}
void TgiMetrics::Duration(penstock::Duration total) { impl_->duration.Observe(Seconds(total)); }

void TgiMetrics::Times(penstock::Duration validation, penstock::Duration queue,
                       penstock::Duration inference, std::uint64_t generated) {
  impl_->validation.Observe(Seconds(validation));
  impl_->queue.Observe(Seconds(queue));
  impl_->inference.Observe(Seconds(inference));
  const auto tokens = static_cast<double>(std::max<std::uint64_t>(1, generated));
  impl_->per_token.Observe(Seconds(inference) / tokens);
}

void TgiMetrics::Skipped(std::uint64_t tokens) {
  impl_->skipped.Observe(static_cast<double>(tokens));
}

void TgiMetrics::Tokens(std::uint64_t prompt, std::uint64_t generated) {
  impl_->input_length.Observe(static_cast<double>(prompt));
  impl_->generated_tokens.Observe(static_cast<double>(generated));
}

void TgiMetrics::MaxNewTokens(std::uint64_t tokens) {
  impl_->max_new_tokens.Observe(static_cast<double>(tokens));
}

void TgiMetrics::Queue(std::uint64_t waiting, std::uint64_t running) {
  impl_->queue_size.Set(static_cast<double>(waiting));
  impl_->batch_size.Set(static_cast<double>(running));
}

void TgiMetrics::ReservedBlocks(std::uint64_t blocks) {
  impl_->batch_tokens.Set(static_cast<double>(blocks * block_size_));
}

void TgiMetrics::Step(penstock::Duration duration, std::uint64_t decode_rows,
                      std::uint64_t prefill_tokens) {
  Method& method = prefill_tokens > 0 ? impl_->prefill : impl_->decode;
  method.count.Increment();
  method.success.Increment();
  method.duration.Observe(Seconds(duration));
  method.forward.Observe(Seconds(duration));
  if (decode_rows > 0) impl_->next_size.Observe(static_cast<double>(decode_rows));
  // A prefill step that also decodes adds requests to a running batch.
  if (prefill_tokens > 0 && decode_rows > 0) impl_->concat.Increment();
}

}  // namespace penstock::router
