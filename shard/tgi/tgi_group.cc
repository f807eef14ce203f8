#include "shard/tgi/tgi_group.h"

#include "common/status.h"
#include "shard/service/shard_service.h"

namespace penstock::shard {
namespace {

// The sequences, and one more for the health check of TGI's router.
constexpr std::uint32_t kSlots = 256 + 1;
// A longer prefill takes several steps of the engine.
constexpr std::uint32_t kCpuStepTokens = 512;
constexpr std::uint32_t kCudaStepTokens = 2048;

// Native epochs come from the clock, so they never have this value.
constexpr Epoch kEpoch{~std::uint64_t{0}};

std::uint32_t StepTokens(const EngineFacts& facts) {
  return facts.device == "cpu" ? kCpuStepTokens : kCudaStepTokens;
}

}  // namespace

absl::StatusOr<std::uint32_t> TgiGroup::Prepare(const std::string& name) {
  const EngineFacts facts = state_.engine.Facts();
  GroupSetup setup;
  setup.epoch = kEpoch;
  setup.world_size = facts.world_size;
  setup.rank = facts.rank;
  setup.rendezvous = name;
  setup.fingerprint = facts.fingerprint;
  setup.limits.max_step_tokens = StepTokens(facts);
  setup.limits.max_sequences = kSlots;
  setup.limits.max_sequence_length = facts.max_position;
  setup.limits.late_masks = true;  // the call then has no Generation of that request
  state_.formation.SecondFormed();
  PENSTOCK_RETURN_IF_ERROR(state_.session.Configure(setup));
  PENSTOCK_ASSIGN_OR_RETURN(const WarmupReport report, state_.session.Warmup());
  cells_ = report.cells;  // allocated but not used: these sequences decode in blocks
  return report.blocks;
}

absl::StatusOr<TgiGroupFacts> TgiGroup::Form(const std::string& name, const Agree& agree) {
  const auto mine = Prepare(name);
  const auto least = agree(mine.ok() ? *mine : 0);
  if (!mine.ok()) return mine.status();
  PENSTOCK_RETURN_IF_ERROR(least.status());
  if (*least == 0) return absl::InternalError("another rank could not form the group");
  const auto blocks = static_cast<std::uint32_t>(*least);
  PENSTOCK_RETURN_IF_ERROR(state_.session.Commit({blocks, cells_}).status());
  state_.session.OpenExecute();
  step_ = 0;
  return TgiGroupFacts{kSlots, blocks, StepTokens(state_.engine.Facts())};
}

absl::StatusOr<StepResult> TgiGroup::Run(StepPlan& plan) {
  plan.epoch = kEpoch;
  plan.step = StepId(++step_);
  return state_.session.StepWithTokens(plan);
}

}  // namespace penstock::shard
