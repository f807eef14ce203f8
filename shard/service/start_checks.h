// Checks of a SequenceStart that do not depend on the state of the shard.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "common/plan/step_plan.h"
#include "shard/service/plan_bounds.h"

namespace penstock::shard {

// All give INVALID_ARGUMENT with the field, the value and the limit.
absl::Status CheckSampling(const SamplingParams& params, std::uint32_t vocabulary,
                           std::uint32_t max_candidates);
absl::Status CheckTokens(const std::vector<TokenId>& tokens, std::uint32_t vocabulary,
                         const char* field);
absl::Status CheckStart(const SequenceStart& start, const PlanBounds& bounds);

}  // namespace penstock::shard
