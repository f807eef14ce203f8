#include "scheduler/admission/admission_policy.h"

#include <algorithm>

#include "scheduler/admission/guaranteed_admission.h"
#include "scheduler/admission/optimistic_admission.h"
#include "scheduler/kv/block_table.h"
#include "scheduler/step/padded_layout.h"
#include "scheduler/step/step_composer.h"

namespace penstock::scheduler {
namespace {

Refusal TooLong(const Arrival& arrival, std::uint64_t limit, const std::string& of_what) {
  Refusal refusal;
  refusal.shortage = {Budget::kTotalTokens, AdmissionPolicy::WorstCaseTokens(arrival), limit};
  refusal.message = "`inputs` tokens + `max_new_tokens` must be <= " + std::to_string(limit) +
                    " (" + of_what + "). Given: " + std::to_string(arrival.prompt.size()) +
                    " `inputs` tokens and " + std::to_string(arrival.max_new_tokens) +
                    " `max_new_tokens`";
  return refusal;
}

Refusal TooLongForOneStep(const Arrival& arrival, std::uint32_t limit) {
  Refusal refusal;
  refusal.shortage = {Budget::kPrefillTokens, arrival.prompt.size(), limit};
  refusal.message = "`inputs` must have <= " + std::to_string(limit) +
                    " tokens (prompts are computed whole, in one step). Given: " +
                    std::to_string(arrival.prompt.size());
  return refusal;
}

Refusal TooManyCandidates(const Arrival& arrival, std::uint32_t limit) {
  const std::uint32_t candidates = arrival.sampling.Candidates();
  Refusal refusal;
  refusal.shortage = {Budget::kStepTokens, candidates, limit};
  refusal.message = limit == 0 ? "`penalty_alpha` needs the server's option contrastive-search"
                               : "`top_k` must be <= " + std::to_string(limit) +
                                     " with `penalty_alpha`. Given: " + std::to_string(candidates);
  return refusal;
}

// A sequence holds the blocks of its window and of what it writes after it: a chunk, or the decodes
// in flight. Both ends may lie inside a block.
std::uint32_t MostWindowBlocks(const Config& config, const GroupCapacity& capacity) {
  const std::uint32_t chunk = MakeStepBudget(config, capacity.max_step_tokens).step_tokens;
  const std::uint32_t written = std::max(chunk, config.pipeline_depth * config.max_decode_rows);
  return BlocksFor(std::uint64_t{capacity.window} + written, capacity.block_size) + 1;
}

}  // namespace

AdmissionPolicy::AdmissionPolicy(const Config& config, const GroupCapacity& capacity)
    : config_(config),
      capacity_(capacity),
      most_window_blocks_(MostWindowBlocks(config, capacity)) {}

std::uint64_t AdmissionPolicy::WorstCaseTokens(const Arrival& arrival) {
  return static_cast<std::uint64_t>(arrival.prompt.size()) + arrival.max_new_tokens;
}

std::uint32_t AdmissionPolicy::BlocksToReserve(const Work& work) const {
  const std::uint64_t prompt = work.request.prompt.size() + work.generated.size();
  const std::uint64_t positions =
      PaddedLayout::PositionsInBlocks(capacity_, prompt, TokensToReserve(work));
  return BlocksFor(positions, capacity_.block_size);
}

std::optional<Refusal> AdmissionPolicy::WhyTooManyBlocks(const Arrival& arrival) const {
  const std::uint64_t tokens = WorstCaseTokens(arrival);
  const std::string of_tokens = " blocks of " + std::to_string(capacity_.block_size) + " tokens";
  const std::uint64_t pool = std::uint64_t{capacity_.blocks} * capacity_.block_size;
  if (tokens > pool) {
    return TooLong(arrival, pool, "a KV cache of " + std::to_string(capacity_.blocks) + of_tokens);
  }
  if (WindowBlocksFor(tokens) <= capacity_.window_blocks) return std::nullopt;
  return TooLong(arrival, std::uint64_t{capacity_.window_blocks} * capacity_.block_size,
                 "a KV cache of " + std::to_string(capacity_.window_blocks) + of_tokens +
                     " for the layers with a window");
}

std::optional<Refusal> AdmissionPolicy::WhyNeverFits(const Arrival& arrival) const {
  const std::uint64_t tokens = WorstCaseTokens(arrival);
  if (tokens > capacity_.max_sequence_length) {
    return TooLong(arrival, capacity_.max_sequence_length, "the longest sequence of the shards");
  }
  if (config_.max_batch_total_tokens > 0 && tokens > config_.max_batch_total_tokens) {
    return TooLong(arrival, config_.max_batch_total_tokens, "max-batch-total-tokens");
  }
  if (const auto why = WhyTooManyBlocks(arrival)) return why;
  if (!PaddedLayout::RowsHold(capacity_, tokens)) {
    return TooLong(arrival, capacity_.cells,
                   "a row store of " + std::to_string(capacity_.cells) + " cells");
  }
  const StepBudget budget = MakeStepBudget(config_, capacity_.max_step_tokens);
  if (arrival.sampling.Candidates() > 0) {
    const std::uint32_t most = std::min(capacity_.max_candidates, budget.step_tokens);
    if (arrival.sampling.Candidates() > most) return TooManyCandidates(arrival, most);
  }
  const std::uint32_t whole = budget.prefill_tokens;
  if (config_.prefill == Prefill::kWhole && arrival.prompt.size() > whole) {
    return TooLongForOneStep(arrival, whole);
  }
  return std::nullopt;
}

std::optional<Shortage> AdmissionPolicy::Check(const Work& work, const GroupState& state) const {
  const std::uint32_t max_running = MaxRunning();
  if (state.running >= max_running) {
    return Shortage{Budget::kBatchSize, state.running + 1u, max_running};
  }
  if (state.slots_available == 0) return Shortage{Budget::kSlots, 1, 0};

  // Every running sequence must get its decode rows in every step.
  const std::uint64_t rows = std::uint64_t{state.decode_rows} + DecodeRows(work);
  const std::uint32_t step = MakeStepBudget(config_, capacity_.max_step_tokens).step_tokens;
  if (state.running > 0 && rows > step) return Shortage{Budget::kStepTokens, rows, step};

  const std::uint64_t tokens = TokensToReserve(work);
  if (config_.max_batch_total_tokens > 0 &&
      state.reserved_tokens + tokens > config_.max_batch_total_tokens) {
    return Shortage{Budget::kTotalTokens, tokens,
                    config_.max_batch_total_tokens - state.reserved_tokens};
  }
  if (!PaddedLayout::RowsHold(capacity_, state.cells_needed)) {
    return Shortage{Budget::kCells, state.cells_needed, capacity_.cells};
  }
  const std::uint32_t blocks = BlocksToReserve(work) - state.blocks_shared;
  if (std::uint64_t{blocks} + state.headroom > state.blocks_available) {
    return Shortage{Budget::kBlocks, std::uint64_t{blocks} + state.headroom,
                    state.blocks_available};
  }
  const std::uint64_t in_window = std::uint64_t{WindowBlocksFor(tokens)} + state.window_headroom;
  if (in_window > state.window_blocks_available) {
    return Shortage{Budget::kBlocks, in_window, state.window_blocks_available};
  }
  return std::nullopt;
}

std::uint32_t AdmissionPolicy::DecodeRows(const Work& work) const {
  const std::uint32_t candidates = work.Candidates();
  return candidates > 0 ? candidates : 1;
}

std::uint32_t AdmissionPolicy::MaxRunning() const {
  if (config_.batching == Batching::kNone) return 1;
  return config_.max_batch_size > 0 ? std::min(config_.max_batch_size, capacity_.slots)
                                    : capacity_.slots;
}

std::unique_ptr<AdmissionPolicy> MakeAdmissionPolicy(const Config& config,
                                                     const GroupCapacity& capacity,
                                                     const OutputLengths& lengths) {
  if (config.admission == AdmissionMode::kGuaranteed) {
    return std::make_unique<GuaranteedAdmission>(config, capacity);
  }
  return std::make_unique<OptimisticAdmission>(config, capacity, lengths);
}

}  // namespace penstock::scheduler
