#include "scheduler/admission/admission_policy.h"

#include <algorithm>
#include <string>

#include "scheduler/admission/guaranteed_admission.h"
#include "scheduler/admission/optimistic_admission.h"
#include "scheduler/kv/block_table.h"
#include "scheduler/step/padded_layout.h"

namespace penstock::scheduler {
namespace {

Refusal TooLong(const Arrival& arrival, const LengthLimit& limit) {
  Refusal refusal;
  refusal.shortage = {Budget::kTotalTokens, AdmissionPolicy::WorstCaseTokens(arrival),
                      limit.tokens};
  refusal.message =
      "`inputs` tokens + `max_new_tokens` must be <= " + std::to_string(limit.tokens) + " (" +
      limit.of_what + "). Given: " + std::to_string(arrival.prompt.size()) +
      " `inputs` tokens and " + std::to_string(arrival.max_new_tokens) + " `max_new_tokens`";
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
  const std::uint32_t rows = std::max(config.max_decode_rows, 1 + capacity.forced_tokens);
  const std::uint32_t written = std::max(chunk, config.pipeline_depth * rows);
  return BlocksFor(std::uint64_t{capacity.window} + written, capacity.block_size) + 1;
}

// In the order in which a refusal names them.
std::vector<LengthLimit> LengthLimits(const Config& config, const GroupCapacity& capacity,
                                      std::uint32_t most_window_blocks) {
  const auto cache = [&capacity](std::uint32_t blocks, const char* of_layers) {
    return LengthLimit{std::uint64_t{blocks} * capacity.block_size,
                       "a KV cache of " + std::to_string(blocks) + " blocks of " +
                           std::to_string(capacity.block_size) + " tokens" + of_layers};
  };
  std::vector<LengthLimit> limits;
  limits.push_back({capacity.max_sequence_length, "the longest sequence of the shards"});
  if (config.max_batch_total_tokens > 0) {
    limits.push_back({config.max_batch_total_tokens, "max-batch-total-tokens"});
  }
  limits.push_back(cache(capacity.blocks, ""));
  if (capacity.window > 0 && most_window_blocks > capacity.window_blocks) {
    limits.push_back(cache(capacity.window_blocks, " for the layers with a window"));
  }
  if (PaddedLayout::StoresRows(capacity)) {
    limits.push_back(
        {capacity.cells, "a row store of " + std::to_string(capacity.cells) + " cells"});
  }
  return limits;
}

}  // namespace

AdmissionPolicy::AdmissionPolicy(const Config& config, const GroupCapacity& capacity)
    : config_(config),
      capacity_(capacity),
      step_(MakeStepBudget(config, capacity.max_step_tokens)),
      most_window_blocks_(MostWindowBlocks(config, capacity)),
      lengths_(LengthLimits(config, capacity, most_window_blocks_)),
      longest_(std::ranges::min(lengths_, {}, &LengthLimit::tokens).tokens),
      longest_prompt_(config.prefill == Prefill::kWhole ? step_.prefill_tokens : UINT32_MAX),
      most_candidates_(std::min(capacity.max_candidates, step_.step_tokens)) {}

std::uint64_t AdmissionPolicy::WorstCaseTokens(const Arrival& arrival) {
  return static_cast<std::uint64_t>(arrival.prompt.size()) + arrival.max_new_tokens;
}

std::uint32_t AdmissionPolicy::BlocksToReserve(const Work& work) const {
  const std::uint64_t prompt = work.request.prompt.size() + work.generated.size();
  const std::uint64_t positions =
      PaddedLayout::PositionsInBlocks(capacity_, prompt, TokensToReserve(work));
  return BlocksFor(positions, capacity_.block_size);
}

bool AdmissionPolicy::Fits(const Arrival& arrival) const {
  return WorstCaseTokens(arrival) <= longest_ && arrival.prompt.size() <= longest_prompt_ &&
         arrival.sampling.Candidates() <= most_candidates_;
}

std::optional<Refusal> AdmissionPolicy::WhyNeverFits(const Arrival& arrival) const {
  for (const LengthLimit& limit : lengths_) {
    if (WorstCaseTokens(arrival) > limit.tokens) return TooLong(arrival, limit);
  }
  if (arrival.sampling.Candidates() > most_candidates_) {
    return TooManyCandidates(arrival, most_candidates_);
  }
  if (arrival.prompt.size() > longest_prompt_) return TooLongForOneStep(arrival, longest_prompt_);
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
  if (state.running > 0 && rows > step_.step_tokens) {
    return Shortage{Budget::kStepTokens, rows, step_.step_tokens};
  }

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
