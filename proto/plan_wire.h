// Plans and results as bytes of penstock.v1, for the router: what every row of a step has is
// written and read here without an object per row, which is a third of what a step costs; whatever
// is rare goes through the messages (plan_conversion.h). Either way the bytes mean the same.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"

namespace penstock::v1 {
class StepPlan;
}  // namespace penstock::v1

namespace penstock::proto {

// One thread at a time.
class PlanWriter {
 public:
  PlanWriter();
  ~PlanWriter();

  // The serialized StepPlan; good until the next call.
  std::string_view Write(const StepPlan& plan);

 private:
  std::unique_ptr<v1::StepPlan> control_;  // all but the segments
  std::string bytes_;
};

// Of a serialized StepResult. Errors: InvalidArgument, what is no such message or no result.
absl::StatusOr<StepResult> ReadResult(std::string_view bytes);

}  // namespace penstock::proto
