// The one conversion between plan value types (common/plan) and their wire form (penstock.v1).
//
// ToProto never fails. It clears the message first, so that a reused message keeps its memory. FromProto checks what the wire cannot express as types (enum values, a
// segment without a kind, parallel arrays of unequal length) and names the field; whether a plan
// makes sense for the present state is the shard's PlanChecker.
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
