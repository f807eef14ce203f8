#include "scheduler/config.h"

namespace penstock::scheduler {
namespace {

std::optional<std::string> AtLeastOne(const char* field, std::uint32_t value) {
  if (value > 0) return std::nullopt;
  return "`" + std::string(field) + "` must be >= 1. Given: 0";
}

}  // namespace

std::optional<std::string> WhyInvalid(const Config& config) {
  if (auto error = AtLeastOne("max-step-tokens", config.max_step_tokens)) return error;
  if (auto error = AtLeastOne("max-waiting-requests", config.max_waiting_requests)) return error;
  if (auto error = AtLeastOne("pipeline-depth", config.pipeline_depth)) return error;
  if (auto error = AtLeastOne("max-decode-rows", config.max_decode_rows)) return error;
  if (config.max_decode_rows > config.max_step_tokens) {
    return "`max-decode-rows` must be <= " + std::to_string(config.max_step_tokens) +
           " (max-step-tokens). Given: " + std::to_string(config.max_decode_rows);
  }
  if (auto error = AtLeastOne("starvation-quantum", config.starvation_quantum)) return error;
  if (config.order == Order::kLongestPrefix && !config.prefix_caching) {
    return "`order` longest-prefix needs prefix-caching";
  }
  if (auto error = AtLeastOne("max-splits", config.max_splits)) return error;
  if (config.max_sparsity_ppm > 1'000'000) {
    return "`max-sparsity` must be <= 1. Given: " + std::to_string(config.max_sparsity_ppm) +
           " millionths";
  }
  if (config.target_inter_token < Duration(0)) {
    return "`target-inter-token-ms` must be >= 0";
  }
  if (config.recovery_timeout < Duration(0)) return "`recovery-timeout` must be >= 0";
  return std::nullopt;
}

}  // namespace penstock::scheduler
