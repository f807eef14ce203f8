#include "scheduler/preemption.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/check.h"
#include "scheduler/admission/optimistic_admission.h"
#include "scheduler/decide.h"
#include "scheduler/kv/block_table.h"
#include "scheduler/step/padded_layout.h"

namespace penstock::scheduler {

Preemption::Preemption(const Config& config, const GroupUp& up, const AdmissionPolicy& admission,
                       SequenceTable& table, Retirement& retirement)
    : config_(config),
      group_(up.group),
      block_size_(up.capacity.block_size),
      decodes_use_blocks_(!PaddedLayout::StoresRows(up.capacity)),
      admission_(admission),
      table_(table),
      retirement_(retirement) {}

// What `positions` and `tokens` exceed the sequence's reservation by.
Deficit Preemption::DeficitOf(const Sequence& sequence, std::uint64_t positions,
                              std::uint64_t tokens) const {
  const std::uint64_t held = sequence.blocks.blocks().size() + sequence.blocks.reserved();
  Deficit deficit;
  // Most sequences have none, and this runs twice for every row of a step: it avoids the division.
  const bool enough = !decodes_use_blocks_ || positions <= held * block_size_;
  deficit.blocks = enough ? 0 : BlocksFor(positions, block_size_) - held;
  const std::uint32_t in_window = admission_.WindowBlocksFor(positions);
  deficit.window_blocks = in_window - std::min(in_window, sequence.window.claim());
  deficit.tokens = tokens - std::min(tokens, sequence.reserved_tokens);
  return deficit;
}

Deficit Preemption::DecodeDeficit(const Sequence& sequence) const {
  const std::uint32_t rows = sequence.NextDecodeRows(max_rows_);
  if (rows == 0) return {};
  const std::uint64_t positions = sequence.PositionsAfter(sequence.TokensOfDecode(rows));
  return DeficitOf(sequence, positions, positions + sequence.Unwritten());
}

void Preemption::BeginStep(std::uint32_t max_rows, StepId step, Time now, Outputs& out) {
  step_ = step;
  max_rows_ = max_rows;
  deficit_ = {};
  waiting_ = false;
  if (config_.admission == AdmissionMode::kGuaranteed) return;
  std::optional<RequestId> beneficiary;
  for (const auto& [id, sequence] : table_.all()) {
    const Deficit deficit = DecodeDeficit(sequence);
    if (!beneficiary && !deficit.none()) beneficiary = sequence.request.request;
    deficit_ += deficit;
  }
  while (!Covered(deficit_, true)) {
    Sequence* victim = ChooseVictim();
    PENSTOCK_CHECK(victim != nullptr, "the worst cases of what cannot be preempted fit the pool");
    const Deficit of_victim = DecodeDeficit(*victim);
    Preempt(*victim, beneficiary, now, out);
    deficit_ -= of_victim;
  }
}

// Whether the deficit can be covered now or, `with_retiring`, when all results in flight are here.
bool Preemption::Covered(const Deficit& deficit, bool with_retiring) const {
  const BlockPool& pool = table_.pool();
  const std::uint64_t blocks =
      std::uint64_t{pool.available()} + (with_retiring ? pool.retiring() : 0);
  if (deficit.blocks > blocks) return false;
  const AttachedBlocks& window = table_.cache().window();
  const std::uint64_t in_window =
      std::uint64_t{window.available()} + (with_retiring ? window.returning() : 0);
  if (deficit.window_blocks > in_window) return false;
  const std::uint64_t limit = config_.max_batch_total_tokens;
  return limit == 0 || deficit.tokens == 0 || table_.reserved_tokens() + deficit.tokens <= limit;
}

// The lowest priority (under Order::kPriority), then the latest arrival.
Sequence* Preemption::ChooseVictim() {
  const auto rank = [this](const Sequence& sequence) {
    const std::int64_t priority = config_.order == Order::kPriority ? sequence.request.priority : 0;
    return std::make_tuple(-priority, sequence.number);
  };
  Sequence* victim = nullptr;
  for (auto& [id, sequence] : table_.all()) {
    if (sequence.retiring || !admission_.MayBePreempted(sequence)) continue;
    if (victim == nullptr || rank(sequence) > rank(*victim)) victim = &sequence;
  }
  return victim;
}

Shortage Preemption::Exceeded() const {
  const std::uint32_t blocks = table_.pool().available();
  if (deficit_.blocks > blocks) return {Budget::kBlocks, deficit_.blocks, blocks};
  const std::uint32_t in_window = table_.cache().window().available();
  if (deficit_.window_blocks > in_window) {
    return {Budget::kBlocks, deficit_.window_blocks, in_window};
  }
  return {Budget::kTotalTokens, deficit_.tokens,
          config_.max_batch_total_tokens - table_.reserved_tokens()};
}

void Preemption::Preempt(Sequence& victim, std::optional<RequestId> beneficiary, Time now,
                         Outputs& out) {
  const Shortage shortage = Exceeded();
  Decision& decision = Decide(group_, victim, DecisionKind::kPreempted, now, out);
  decision.short_of = shortage.budget;
  decision.needed = shortage.needed;
  decision.available = shortage.available;
  if (beneficiary != victim.request.request) decision.behind = beneficiary;
  decision.step = step_;
  ++victim.preemptions;
  victim.yielded = false;
  table_.Preempt(victim);
  PENSTOCK_CHECK(victim.preemptions <= OptimisticAdmission::kMaxPreemptions,
                 "at most 3 preemptions");
  retirement_.ReclaimIfUnreferenced(victim, now, out);
}

void Preemption::Recompute(Sequence& sequence, Time now, Outputs& out) {
  Decision& decision = Decide(group_, sequence, DecisionKind::kPreempted, now, out);
  decision.short_of = Budget::kOriginalLength;
  decision.needed = sequence.PositionsAfter(1);
  decision.available = sequence.most_positions;
  decision.step = sequence.last_plan;
  sequence.recomputed = true;
  sequence.yielded = false;
  table_.Preempt(sequence);
  retirement_.ReclaimIfUnreferenced(sequence, now, out);
}

void Preemption::Yield(Sequence& sequence, RequestId due, StepId step, Time now, Outputs& out) {
  Decision& decision = Decide(group_, sequence, DecisionKind::kPreempted, now, out);
  decision.short_of = Budget::kOrder;
  decision.needed = config_.starvation_quantum;
  decision.available = sequence.tokens_received - sequence.resumed;
  decision.behind = due;
  decision.step = step;
  sequence.yielded = true;
  table_.Preempt(sequence);
  retirement_.ReclaimIfUnreferenced(sequence, now, out);
}

bool Preemption::Cover(Sequence& sequence, Time now, Outputs& out) {
  const Deficit deficit = DecodeDeficit(sequence);
  if (deficit.none()) return true;
  if (waiting_ || !Covered(deficit, false)) {
    waiting_ = true;
    Defer(sequence, deficit, now, out);
    return false;
  }
  sequence.waits_for_memory = false;
  const Deficit extension = Extension(sequence, deficit);
  Deficit all = deficit_;
  all -= deficit;
  all += extension;
  const Deficit& granted = Covered(all, false) ? extension : deficit;
  deficit_ -= deficit;
  table_.Extend(sequence, {static_cast<std::uint32_t>(granted.blocks),
                           static_cast<std::uint32_t>(granted.window_blocks), granted.tokens});
  return true;
}

// What the sequence is expected to need now, at least its deficit.
Deficit Preemption::Extension(const Sequence& sequence, const Deficit& deficit) const {
  const std::uint64_t tokens = admission_.TokensToReserve(sequence);
  const Deficit expected = DeficitOf(sequence, tokens, tokens);
  return {std::max(expected.blocks, deficit.blocks),
          std::max(expected.window_blocks, deficit.window_blocks),
          std::max(expected.tokens, deficit.tokens)};
}

void Preemption::Defer(Sequence& sequence, const Deficit& deficit, Time now, Outputs& out) {
  if (std::exchange(sequence.waits_for_memory, true)) return;  // recorded before
  Decision& decision = Decide(group_, sequence, DecisionKind::kDeferred, now, out);
  if (deficit.blocks > 0) {
    decision.short_of = Budget::kBlocks;
    decision.needed = deficit.blocks;
    decision.available = table_.pool().available();
  } else if (deficit.window_blocks > 0) {
    decision.short_of = Budget::kBlocks;
    decision.needed = deficit.window_blocks;
    decision.available = table_.cache().window().available();
  } else {
    decision.short_of = Budget::kTotalTokens;
    decision.needed = deficit.tokens;
  }
}

void Preemption::UpdateHeadroom() {
  headroom_ = window_headroom_ = 0;
  if (config_.admission == AdmissionMode::kGuaranteed) return;
  for (const auto& [id, sequence] : table_.all()) {
    if (sequence.retiring) continue;
    const std::uint64_t positions = sequence.PositionsAfter(
        std::uint64_t{config_.pipeline_depth} * sequence.TokensOfDecode(sequence.most_rows));
    const std::uint64_t most = AdmissionPolicy::WorstCaseTokens(sequence.request);
    const Deficit deficit = DeficitOf(sequence, std::min(positions, most), 0);
    headroom_ += static_cast<std::uint32_t>(deficit.blocks);
    window_headroom_ += static_cast<std::uint32_t>(deficit.window_blocks);
  }
}

}  // namespace penstock::scheduler
