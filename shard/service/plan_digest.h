// Running hash over every plan and every result's control state (slots, lengths, tokens, finish
// reasons; no logprobs). Ranks that saw the same plans and agreed on the same tokens have the same
// digest; a difference means that they are out of step. It does not detect numerical corruption.
//
// Pure; one owner (the model thread).
#pragma once

#include <cstdint>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"

namespace penstock::shard {

class PlanDigest {
 public:
  void Reset() { state_ = kStart; }
  void Mix(const StepPlan& plan);
  void Mix(const StepResult& result);
  std::uint64_t value() const { return state_; }

 private:
  static constexpr std::uint64_t kStart = 0xcbf29ce484222325ULL;
  std::uint64_t state_ = kStart;
};

}  // namespace penstock::shard
