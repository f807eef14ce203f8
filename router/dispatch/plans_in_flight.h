// The plans that a replica group was sent and has not answered completely. Compares the ranks'
// answers and decides when a result may go to the scheduler.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_result.h"
#include "common/time.h"

namespace penstock::router {

class PlansInFlight {
 public:
  PlansInFlight(Epoch epoch, std::size_t ranks) : epoch_(epoch), ranks_(ranks) {}

  void Add(StepId step, Time sent);
  // Takes a rank's result. If it was not asked for or its digest differs from another rank's,
  // returns why.
  std::optional<std::string> Answer(std::uint32_t rank, StepResult result);
  // The next result of rank 0 in the order of the steps; nullopt: it is not ready. A step's result
  // is ready when all ranks have answered the step before it, so a slow rank lets the pipeline run
  // at most one step further.
  std::optional<StepResult> TakeReady();
  void Clear() { plans_.clear(); }

  // Plans that rank 0 has not answered.
  std::uint64_t without_result() const;
  // When the oldest plan was sent; nullopt: none is in flight.
  std::optional<Time> oldest() const;
  // Describes the oldest plan: "shard-1 has not answered step 5". A plan must be in flight.
  std::string DescribeOldest() const;

 private:
  struct Plan {
    Time sent;
    std::vector<std::optional<std::uint64_t>> digests;  // by rank
    std::optional<StepResult> result;                   // of rank 0, until it is ready
  };

  const Epoch epoch_;
  const std::size_t ranks_;
  std::map<StepId, Plan> plans_;
};

}  // namespace penstock::router
