#include "scheduler/admission/group_admission.h"

#include <algorithm>

namespace penstock::scheduler {

GroupAdmission::GroupAdmission(const Config& config, const GroupCapacity& capacity,
                               const AdmissionPolicy& policy, const GroupView& group)
    : config_(config),
      capacity_(capacity),
      policy_(policy),
      group_(group),
      gate_(config),
      batch_(config) {}

GroupState GroupAdmission::StateFor(const Work& work) const {
  const PrefixMatch match = group_.sharing.Match(work, group_.draft.step());
  GroupState state;
  state.blocks_available = group_.table.pool().available();
  state.blocks_shared = match.blocks - match.unlocked;
  state.slots_available = group_.table.slots().available();
  state.running = group_.table.running();
  state.decode_rows = group_.table.DecodeRows();
  state.reserved_tokens = group_.table.reserved_tokens();
  state.headroom = group_.preemption.headroom();
  state.window_blocks_available = group_.table.cache().window().available();
  state.window_headroom = group_.preemption.window_headroom();
  state.cells_needed = group_.layout.CellsNeeded(work, {});
  return state;
}

std::optional<Shortage> GroupAdmission::Check(const Work& work) const {
  if (const auto others = CheckAlone(work)) return others;
  if (const auto closed = batch_.Check(work, group_.table.running())) return closed;
  return policy_.Check(work, StateFor(work));
}

// Also sequences whose last plans are in flight may end the group.
std::optional<Shortage> GroupAdmission::CheckAlone(const Work& work) const {
  const SequenceTable& table = group_.table;
  if (table.all().empty() || (!work.Suspect() && table.suspects() == 0)) return std::nullopt;
  return Shortage{Budget::kAlone, 1, 0};
}

std::uint32_t GroupAdmission::CachedTokens(const Work& work) const {
  const PrefixMatch match = group_.sharing.Match(work, group_.draft.step());
  const std::uint32_t blocks = match.blocks * capacity_.block_size;
  if (!match.tail) return blocks;
  const BlockCache& cache = group_.table.cache();
  const std::uint32_t needed = policy_.BlocksToReserve(work) - (match.blocks - match.unlocked);
  const std::uint32_t claim = policy_.WindowBlocksFor(policy_.TokensToReserve(work));
  // A tail is copied only if blocks are left besides the reservation.
  const std::uint32_t left = cache.pool().available() - std::min(cache.pool().available(), needed);
  const std::uint32_t left_in_window =
      cache.window().available() - std::min(cache.window().available(), claim);
  return cache.HasRoomForTail(left, left_in_window) ? blocks + match.tail_tokens : blocks;
}

std::optional<Shortage> GroupAdmission::CheckStep(const Work& work) const {
  if (config_.batching == Batching::kStatic) return std::nullopt;  // later steps prefill
  const std::uint32_t cached = CachedTokens(work);
  const std::uint64_t length = work.request.prompt.size() + work.generated.size();
  const bool whole = config_.prefill == Prefill::kWhole &&
                     length <= MakeStepBudget(config_, capacity_.max_step_tokens).prefill_tokens;
  const std::uint64_t prompt = length - cached;
  const std::uint64_t needed = whole ? prompt : 1;
  const PrefillFit fit = group_.draft.composer().Fit(cached, static_cast<std::uint32_t>(needed));
  if (fit.count >= needed) return std::nullopt;
  return Shortage{fit.short_of, prompt, fit.count};
}

GroupAdmission::Trial GroupAdmission::BeginTrial() const {
  Trial trial;
  trial.prefill_left = group_.draft.composer().Fit(0, UINT32_MAX).count;
  return trial;
}

bool GroupAdmission::AddTo(Trial& trial, const Work& work) const {
  const std::uint64_t prompt = work.request.prompt.size() + work.generated.size();
  GroupState state = StateFor(work);
  state.headroom += trial.blocks;
  state.window_headroom += trial.window_blocks;
  state.reserved_tokens += trial.tokens;
  state.running += trial.count;
  state.decode_rows += trial.rows;
  state.slots_available -= std::min(state.slots_available, trial.count);
  if (trial.count > 0) state.cells_needed = group_.layout.CellsNeeded(work, trial.positions);
  if (prompt > trial.prefill_left || policy_.Check(work, state)) return false;
  trial.prefill_left -= prompt;
  trial.blocks += policy_.BlocksToReserve(work) - state.blocks_shared;
  trial.window_blocks += policy_.WindowBlocksFor(policy_.TokensToReserve(work));
  trial.tokens += policy_.TokensToReserve(work);
  trial.rows += policy_.DecodeRows(work);
  trial.positions.push_back(AdmissionPolicy::WorstCaseTokens(work.request));
  ++trial.count;
  return true;
}

void GroupAdmission::EndStep(bool made) {
  batch_.EndStep();
  if (made) gate_.OnStep(group_.draft.admitted());
}

}  // namespace penstock::scheduler
