// TGI's rule for joining a running batch without chunked prefill: a whole prompt holds up everybody
// that decodes, so newcomers wait until enough of them can come together (waiting_served_ratio
// times the running), but for max_waiting_tokens steps at most. With chunked prefill, or when
// nothing runs, anybody may join at any step, as in TGI.
#pragma once

#include <cstdint>

#include "scheduler/config.h"

namespace penstock::scheduler {

class AdmissionGate {
 public:
  explicit AdmissionGate(const Config& config) : config_(config) {}

  // Fewest newcomers that may join `running` requests in the next step; 0 and 1 hold nobody up.
  std::uint32_t MinNewcomers(std::uint32_t running) const {
    const bool applies =
        config_.prefill == Prefill::kWhole && config_.batching == Batching::kContinuous;
    if (!applies || waited_ >= config_.max_waiting_tokens) return 0;
    return static_cast<std::uint32_t>(std::uint64_t{running} * config_.waiting_served_permille /
                                      1000);
  }

  // A plan was made; `joined`: somebody was admitted into it. TGI counts the step of the newcomers'
  // prefill, too.
  void OnStep(bool joined) { waited_ = joined ? 1 : waited_ + 1; }

 private:
  const Config config_;
  std::uint32_t waited_ = 0;  // plans since somebody joined
};

}  // namespace penstock::scheduler
