// Batching::kStatic: request-level batches, kept to reproduce classic comparisons. One step admits
// the requests of a batch. The next batch begins when all of them have ended; until then the places
// of requests that ended early stay empty.
//
//   StaticGrouping::kWindow  waiting requests in the queue's order, up to the batch's size
//   StaticGrouping::kEqual   only requests with the prompt length and max_new_tokens of the first
//                            one, so that the batch needs no padding (effective-batching's rule).
//                            Every batch begins with the front of the queue, so a request waits for
//                            at most as many batches as there were requests before it.
//
// With other batchings a request may be admitted at any time.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class StaticBatch {
 public:
  explicit StaticBatch(const Config& config)
      : batching_(config.batching), grouping_(config.static_grouping) {}

  void BeginStep(std::uint32_t running) { open_ = running == 0; }
  void EndStep() { open_ = false; }
  void Add(const Work& work) { lengths_ = LengthsOf(work); }

  // Why the request cannot be in the batch; `running` of its requests have not ended.
  std::optional<Shortage> Check(const Work& work, std::uint32_t running) const;

  // A request that does not fit the batch does not stop later ones from being tried.
  bool Selective(std::uint32_t running) const {
    return batching_ == Batching::kStatic && grouping_ == StaticGrouping::kEqual && open_ &&
           running > 0;
  }

 private:
  struct Lengths {
    std::size_t prompt = 0;
    std::uint32_t output = 0;
    friend bool operator==(const Lengths&, const Lengths&) = default;
  };
  static Lengths LengthsOf(const Work& work) {
    return {work.request.prompt.size(), work.request.max_new_tokens};
  }

  Batching batching_;
  StaticGrouping grouping_;
  bool open_ = false;
  Lengths lengths_;  // of the request that was added last
};

}  // namespace penstock::scheduler
