// Batching::kStatic: request-level batches, kept to reproduce the classic comparisons. A batch is
// gathered during the one step that starts it, closed then, and the next one is gathered when its
// last member has ended; seats of members that end early stay empty.
//
//   StaticGrouping::kWindow  whoever waits, in the queue's order, up to the batch's size
//   StaticGrouping::kEqual   only requests whose prompt length and max_new_tokens equal those of
//                            the first (effective-batching's rule: such a batch needs no padding).
//                            The others wait for a later batch. Every batch begins with the front
//                            of the queue, so a request waits for as many batches as there are
//                            requests before it, at most.
//
// With other batchings everybody may join at any time.
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
  void Add(const Work& work) { member_ = LengthsOf(work); }

  // Why the request may not join now; `running` members have not ended.
  std::optional<Shortage> Check(const Work& work, std::uint32_t running) const;

  // Whether those behind a request that may not join may still do.
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
  Lengths member_;  // of the newest member
};

}  // namespace penstock::scheduler
