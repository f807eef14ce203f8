// The group that generate.v3 runs in: formed through the same session as a native driver's, by the
// ranks themselves. The name of the group is the rendezvous; the least number of blocks of all
// ranks is the cache.
//
// One owner: the model thread.
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

// What Form found.
struct TgiGroupFacts {
  std::uint32_t slots = 0;
  std::uint32_t blocks = 0;
  std::uint32_t max_step_tokens = 0;
};

class TgiGroup {
 public:
  // Gives each rank's value to all and gets the least; 0 means that a rank failed.
  using Agree = std::function<absl::StatusOr<std::uint64_t>(std::uint64_t mine)>;

  // `state` outlives the group.
  explicit TgiGroup(ServiceState& state) : state_(state) {}

  // All ranks at once. Warms up, so it takes as long as that.
  absl::StatusOr<TgiGroupFacts> Form(const std::string& name, const Agree& agree);

  // Gives epoch and step to the plan and executes it; tokens on every rank.
  absl::StatusOr<StepResult> Run(StepPlan& plan);

 private:
  absl::StatusOr<std::uint32_t> Prepare(const std::string& name);

  ServiceState& state_;
  std::uint64_t step_ = 0;
  std::uint32_t cells_ = 0;  // of the padded KV layout
};

}  // namespace penstock::shard
