// TGI's rule for adding requests to a running batch without chunked prefill. A whole prompt delays
// all running decodes, so new requests wait until waiting_served_ratio times the running ones can
// be admitted together, or until max_waiting_tokens steps have passed. The rule does not apply to
// chunked prefill, nor while nothing runs.
#pragma once

#include <cstdint>

#include "scheduler/config.h"

namespace penstock::scheduler {

class AdmissionGate {
 public:
  explicit AdmissionGate(const Config& config) : config_(config) {}

  // Fewest requests that must be admitted together to `running` ones in the next step. 0 and 1: any
  // number may be.
  std::uint32_t MinNewcomers(std::uint32_t running) const {
    const bool applies =
        config_.prefill == Prefill::kWhole && config_.batching == Batching::kContinuous;
    if (!applies || waited_ >= config_.max_waiting_tokens) return 0;
    return static_cast<std::uint32_t>(std::uint64_t{running} * config_.waiting_served_permille /
                                      1000);
  }

  // A plan was made; `admitted`: requests were admitted into it. Like TGI, it counts the step that
  // prefills them.
  void OnStep(bool admitted) { waited_ = admitted ? 1 : waited_ + 1; }

 private:
  const Config config_;
  std::uint32_t waited_ = 0;  // plans since the last admission
};

}  // namespace penstock::scheduler
