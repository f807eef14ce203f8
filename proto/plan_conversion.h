// The one conversion between plan value types (common/plan) and their wire form (penstock.v1).
//
// ToProto never fails. It clears the message first, so that a reused message keeps its memory.
// FromProto refuses unknown enum values, a segment without a kind and parallel arrays of unequal
// length, and its error names the field. PlanChecker decides whether a plan is valid for the state
// of a shard.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"

namespace penstock::v1 {
class StepPlan;
class StepResult;
}  // namespace penstock::v1

namespace penstock::proto {

void ToProto(const StepPlan& plan, v1::StepPlan& wire);
absl::StatusOr<StepPlan> FromProto(const v1::StepPlan& wire);

void ToProto(const StepResult& result, v1::StepResult& wire);
absl::StatusOr<StepResult> FromProto(const v1::StepResult& wire);

}  // namespace penstock::proto
