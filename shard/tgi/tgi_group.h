// The group in which generate.v3 runs. The ranks form it themselves, through the same session as a
// native driver. The name of the group is the rendezvous. The cache has the least number of blocks
// that any rank reports.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"

namespace penstock::shard {

struct ServiceState;

// The result of Form.
struct TgiGroupFacts {
  std::uint32_t slots = 0;
  std::uint32_t blocks = 0;
  std::uint32_t max_step_tokens = 0;
};

class TgiGroup {
 public:
  // Exchanges a value with all ranks and returns the least; 0 means that a rank failed.
  using Agree = std::function<absl::StatusOr<std::uint64_t>(std::uint64_t mine)>;

  // `state` outlives the group.
  explicit TgiGroup(ServiceState& state) : state_(state) {}

  // Called by all ranks at the same time. Includes the warm-up.
  absl::StatusOr<TgiGroupFacts> Form(const std::string& name, const Agree& agree);

  // Sets epoch and step of the plan and executes it. Every rank gets the tokens.
  absl::StatusOr<StepResult> Run(StepPlan& plan);

 private:
  absl::StatusOr<std::uint32_t> Prepare(const std::string& name);

  ServiceState& state_;
  std::uint64_t step_ = 0;
  std::uint32_t cells_ = 0;  // positions of padded KV rows
};

}  // namespace penstock::shard
