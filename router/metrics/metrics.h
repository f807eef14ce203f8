// Everything that GET /metrics shows. Each value is counted in one place, in the
// class that the accessor returns:
//
//   http       router/http       requests, tenants  router/api
//   scheduler, steps, groups     router/dispatch
//   spans      router/telemetry  access             router/main
//
// Labels never hold client input: routes are the patterns of the route table, kinds are closed
// sets, tenants are the operator's names of API keys.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "router/metrics/access_metrics.h"
#include "router/metrics/group_metrics.h"
#include "router/metrics/http_metrics.h"
#include "router/metrics/process_metrics.h"
#include "router/metrics/request_metrics.h"
#include "router/metrics/scheduler_metrics.h"
#include "router/metrics/span_metrics.h"
#include "router/metrics/step_metrics.h"
#include "router/metrics/tenant_metrics.h"

namespace penstock::router {

class Metrics {
 public:
  // `version` is shown as a label of penstock_build_info.
  explicit Metrics(std::string_view version = "");
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // From now on everything is counted under TGI's names as well. Once, before the first request.
  // `tgi_buckets`: tgi_batch_next_size has TGI's 1,024 buckets instead of 11.
  void AddTgiNames(std::uint32_t max_input_tokens, std::uint32_t max_total_tokens,
                   std::uint32_t block_size, bool tgi_buckets);

  // From now on Render() shows vLLM's names too. Once, before the first request.
  void AddVllmNames(std::string model_name, std::uint32_t block_size) {
    vllm_ = {std::move(model_name), block_size};
  }

  HttpMetrics& http() { return http_; }
  RequestMetrics& requests() { return requests_; }
  TenantMetrics& tenants() { return tenants_; }
  SchedulerMetrics& scheduler() { return scheduler_; }
  StepMetrics& steps() { return steps_; }
  GroupMetrics& groups() { return groups_; }
  SpanMetrics& spans() { return spans_; }
  AccessMetrics& access() { return access_; }

  // Every metric, also those without a value yet.
  const std::vector<FamilyText>& families() const { return registry_.families(); }
  // The text exposition format 0.0.4.
  std::string Render() const;

 private:
  Registry registry_;
  std::unique_ptr<TgiMetrics> tgi_;
  std::optional<std::pair<std::string, std::uint32_t>> vllm_;  // model name, size of a block
  HttpMetrics http_;
  RequestMetrics requests_;
  TenantMetrics tenants_;
  SchedulerMetrics scheduler_;
  StepMetrics steps_;
  GroupMetrics groups_;
  SpanMetrics spans_;
  AccessMetrics access_;
  ProcessMetrics process_;
};

}  // namespace penstock::router
