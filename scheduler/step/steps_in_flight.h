// The steps of one replica group whose plans were sent and whose results have not arrived.
//
// Not synchronised. Reuses the memory of its lists from step to step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace penstock::scheduler {

// A plan in flight refers to a sequence, which must live until the result arrives.
struct InFlightReference {
  SequenceId sequence;
  SlotId slot;
  std::uint32_t max_tokens = 0;  // the most that the plan can yield for it
};

struct StepInFlight {
  StepId step;
  Duration predicted{0};  // by the cost model
  std::vector<InFlightReference> references;
};

class StepsInFlight {
 public:
  std::uint32_t size() const { return static_cast<std::uint32_t>(steps_.size()); }
  bool empty() const { return steps_.empty(); }

  // A plan was sent. `references` is exchanged for an empty list.
  void Add(StepId step, Duration predicted, std::vector<InFlightReference>& references);

  // Removes the oldest step if it is `step`. Results arrive in order, so any other result is late
  // or repeated.
  std::optional<StepInFlight> Take(StepId step);
  // Gives back the memory of a step that was taken.
  void Recycle(StepInFlight& done);

 private:
  std::vector<StepInFlight> steps_;  // the oldest first; at most the pipeline's depth
  std::vector<std::vector<InFlightReference>> spare_;
};

}  // namespace penstock::scheduler
