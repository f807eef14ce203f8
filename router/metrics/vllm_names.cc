#include "router/metrics/vllm_names.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

namespace penstock::router {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::string_view kBlocks = "penstock_kv_blocks";
constexpr std::string_view kSuccess = "penstock_requests_success_total";

// Copied as they are.
constexpr VllmName kCopies[] = {
    {"vllm:num_requests_running", "penstock_requests_running", "", "Requests being computed."},
    {"vllm:num_requests_waiting", "penstock_queue_size", "", "Requests waiting for admission."},
    {"vllm:num_preemptions_total", "penstock_preemptions_total", "",
     "Running requests that were preempted."},
    {"vllm:prompt_tokens_total", "penstock_prompt_tokens_total", "",
     "Prompt tokens of all requests."},
    {"vllm:generation_tokens_total", "penstock_generated_tokens_total", "", "Tokens generated."},
    {"vllm:prefix_cache_queries_total", "penstock_prefix_cache_lookup_tokens_total", "",
     "Prompt tokens that were looked up in the prefix cache."},
    {"vllm:prefix_cache_hits_total", "penstock_prefix_cache_hit_tokens_total", "",
     "Of these, tokens that were found."},
    {"vllm:time_to_first_token_seconds", "penstock_time_to_first_token_seconds", "",
     "From arrival to the first token."},
    {"vllm:inter_token_latency_seconds", "penstock_inter_token_latency_seconds", "",
     "Between one token and the next of a request."},
    {"vllm:time_per_output_token_seconds", "penstock_inter_token_latency_seconds", "",
     "The older name of vllm:inter_token_latency_seconds."},
    {"vllm:e2e_request_latency_seconds", "penstock_request_duration_seconds", "",
     "From arrival to the last token."},
    {"vllm:request_queue_time_seconds", "penstock_request_queue_seconds", "",
     "From queued to the first plan."},
    {"vllm:request_prompt_tokens", "penstock_request_prompt_tokens", "",
     "Prompt tokens per request."},
    {"vllm:request_generation_tokens", "penstock_request_generated_tokens", "",
     "Generated tokens per request."},
};

// Computed from the samples of their source.
constexpr VllmName kUsage = {"vllm:kv_cache_usage_perc", kBlocks, "",
                             "Share of the KV cache blocks in use; 1 is all of them."};
constexpr VllmName kOlderUsage = {"vllm:gpu_cache_usage_perc", kBlocks, "",
                                  "The older name of vllm:kv_cache_usage_perc."};
constexpr VllmName kCacheConfig = {"vllm:cache_config_info", kBlocks, "block_size num_gpu_blocks",
                                   "Always 1; size and number of the KV cache blocks are labels."};
constexpr VllmName kFinished = {"vllm:request_success_total", kSuccess, "finished_reason",
                                "Requests that ended, by reason: stop, length, abort or error."};

std::string_view LabelOf(const ClientMetric& sample, std::string_view name) {
  for (const ClientMetric::Label& label : sample.label) {
    if (label.name == name) return label.value;
  }
  return {};
}

class VllmPage {
 public:
  VllmPage(const std::string& model_name, std::span<const MetricFamily> own)
      : labels_{{"engine", "0"}, {"model_name", model_name}}, own_(own) {}

  // A source without a sample gives a family without one.
  MetricFamily Copied(const VllmName& name) const {
    MetricFamily made{std::string(name.name), std::string(name.help), MetricType::Untyped, {}};
    const MetricFamily* source = Find(name.source);
    if (source == nullptr) return made;
    made.type = source->type;
    made.metric = source->metric;
    for (ClientMetric& sample : made.metric) sample.label = labels_;
    return made;
  }

  MetricFamily Usage(const VllmName& name) const {
    const double all = Blocks("");
    const double busy = Blocks("used") + Blocks("retiring");
    return {std::string(name.name),
            std::string(name.help),
            MetricType::Gauge,
            {GaugeOf(all > 0 ? busy / all : 0, {})}};
  }

  MetricFamily CacheConfig(std::uint32_t block_size) const {
    const auto blocks = static_cast<std::uint64_t>(Blocks(""));
    return {std::string(kCacheConfig.name),
            std::string(kCacheConfig.help),
            MetricType::Gauge,
            {GaugeOf(1, {{"block_size", std::to_string(block_size)},
                         {"num_gpu_blocks", std::to_string(blocks)}})}};
  }

  // vLLM shows each reason from the start.
  MetricFamily Finished() const {
    std::map<std::string, double> ended = {{"abort", SumOf("penstock_requests_cancelled_total")},
                                           {"error", SumOf("penstock_requests_failure_total")},
                                           {"length", 0},
                                           {"stop", 0}};
    if (const MetricFamily* success = Find(kSuccess)) {
      for (const ClientMetric& sample : success->metric) {
        const std::string_view reason = LabelOf(sample, "finish_reason");
        ended[reason == "length"      ? "length"
              : reason == "cancelled" ? "abort"
                                      : "stop"] += sample.counter.value;
      }
    }
    MetricFamily made{
        std::string(kFinished.name), std::string(kFinished.help), MetricType::Counter, {}};
    for (const auto& [reason, count] : ended) {
      ClientMetric sample;
      sample.label = labels_;
      sample.label.push_back({"finished_reason", reason});
      sample.counter.value = count;
      made.metric.push_back(std::move(sample));
    }
    return made;
  }

 private:
  ClientMetric GaugeOf(double value, const std::vector<ClientMetric::Label>& more) const {
    ClientMetric sample;
    sample.label = labels_;
    sample.label.insert(sample.label.end(), more.begin(), more.end());
    sample.gauge.value = value;
    return sample;
  }

  // KV cache blocks in `state`; empty: in all states.
  double Blocks(std::string_view state) const {
    double sum = 0;
    if (const MetricFamily* blocks = Find(kBlocks)) {
      for (const ClientMetric& sample : blocks->metric) {
        if (state.empty() || LabelOf(sample, "state") == state) sum += sample.gauge.value;
      }
    }
    return sum;
  }

  // The sum over all members of a counter.
  double SumOf(std::string_view name) const {
    double sum = 0;
    if (const MetricFamily* family = Find(name)) {
      for (const ClientMetric& sample : family->metric) sum += sample.counter.value;
    }
    return sum;
  }

  const MetricFamily* Find(std::string_view name) const {
    const auto found = std::ranges::find(own_, name, &MetricFamily::name);
    return found == own_.end() ? nullptr : &*found;
  }

  const std::vector<ClientMetric::Label> labels_;
  const std::span<const MetricFamily> own_;
};

}  // namespace

const std::vector<VllmName>& VllmNames() {
  static const std::vector<VllmName> names = [] {
    std::vector<VllmName> all(std::begin(kCopies), std::end(kCopies));
    all.insert(all.end(), {kUsage, kOlderUsage, kCacheConfig, kFinished});
    return all;
  }();
  return names;
}

void AppendVllmNames(const std::string& model_name, std::uint32_t block_size,
                     std::vector<MetricFamily>& page) {
  std::vector<MetricFamily> made;
  const VllmPage vllm(model_name, page);
  for (const VllmName& name : kCopies) made.push_back(vllm.Copied(name));
  made.push_back(vllm.Usage(kUsage));
  made.push_back(vllm.Usage(kOlderUsage));
  made.push_back(vllm.CacheConfig(block_size));
  made.push_back(vllm.Finished());
  page.insert(page.end(), std::make_move_iterator(made.begin()),
              std::make_move_iterator(made.end()));
}

}  // namespace penstock::router
