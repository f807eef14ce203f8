#include "scheduler/step/steps_in_flight.h"

#include <utility>

namespace penstock::scheduler {

void StepsInFlight::Add(StepId step, Duration predicted,
                        std::vector<InFlightReference>& references) {
  steps_.push_back({step, predicted, std::exchange(references, {})});
  if (spare_.empty()) return;
  references = std::move(spare_.back());
  spare_.pop_back();
}

std::optional<StepInFlight> StepsInFlight::Take(StepId step) {
  if (steps_.empty() || steps_.front().step != step) return std::nullopt;
  StepInFlight done = std::move(steps_.front());
  steps_.erase(steps_.begin());
  return done;
}

void StepsInFlight::Recycle(StepInFlight& done) {
  done.references.clear();
  spare_.push_back(std::move(done.references));
}

}  // namespace penstock::scheduler
