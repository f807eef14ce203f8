// vLLM's names for the metrics of a page of /metrics, for its dashboards and for the endpoint
// picker of the Gateway API inference extension. Nothing is counted twice: the values are copied
// from Penstock's families when a page is made.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::router {

struct VllmName {
  std::string_view name;
  std::string_view source;  // Penstock's family
  std::string_view labels;  // names of its own labels, separated by blanks
  std::string_view help;
};

// All vLLM names with the metrics they copy, in the order in which /metrics prints them.
const std::vector<VllmName>& VllmNames();

// Appends the families to `page`. Each member has the labels `model_name` and `engine` ("0": a
// router has one queue).
void AppendVllmNames(const std::string& model_name, std::uint32_t block_size,
                     std::vector<prometheus::MetricFamily>& page);

}  // namespace penstock::router
