#include "router/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>
#include <vector>

#include "router/metrics/vllm_names.h"

namespace penstock::router {

Metrics::Metrics(std::string_view version)
    : http_(registry_),
      requests_(registry_, tgi_),
      tenants_(registry_),
      scheduler_(registry_, tgi_),
      steps_(registry_, tgi_),
      groups_(registry_),
      spans_(registry_),
      access_(registry_),
      process_(registry_) {
  Families(registry_)
      .Gauges("penstock_build_info", "Always 1; the version is the label.", "version")
      .Add({{"version", std::string(version)}})
      .Set(1);
}

void Metrics::AddTgiNames(std::uint32_t max_input_tokens, std::uint32_t max_total_tokens,
                          std::uint32_t block_size, bool tgi_buckets) {
  tgi_ = std::make_unique<TgiMetrics>(registry_, max_input_tokens, max_total_tokens, block_size,
                                      tgi_buckets);
}

std::string Metrics::Render() const {
  std::vector<prometheus::MetricFamily> page = registry_.Collect();
  process_.AppendTo(page);
  if (vllm_) AppendVllmNames(vllm_->first, vllm_->second, page);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, page);
  return std::move(out).str();
}

}  // namespace penstock::router
