#include "sim/model/group_needs.h"

#include <algorithm>
#include <string>

namespace penstock::sim {

using scheduler::AdmissionMode;
using scheduler::Arrival;
using scheduler::Prefill;
using scheduler::Shortage;

namespace {

constexpr std::uint32_t kMaxPreemptions = 3;

}  // namespace

std::uint32_t GroupNeeds::StepTokens() const {
  return std::min(config_.max_step_tokens, capacity_.max_step_tokens);
}

std::uint32_t GroupNeeds::PrefillTokens() const {
  const std::uint32_t share = config_.max_batch_prefill_tokens;
  return share > 0 ? std::min(share, StepTokens()) : StepTokens();
}

std::uint32_t GroupNeeds::MostRowsOf(const Arrival& arrival) const {
  return arrival.grammar.empty() ? config_.max_decode_rows : capacity_.forced_tokens + 1;
}

std::uint32_t GroupNeeds::MostRows() const {
  return std::max(config_.max_decode_rows, capacity_.forced_tokens + 1);
}

std::uint32_t GroupNeeds::Blocks(std::uint64_t positions) const {
  return static_cast<std::uint32_t>((positions + capacity_.block_size - 1) / capacity_.block_size);
}

bool GroupNeeds::MayBePreempted(const ModelRequest& request) const {
  if (config_.admission == AdmissionMode::kGuaranteed) return false;
  if (config_.admission == AdmissionMode::kMixed && request.arrival.length_given) return false;
  return request.preemptions < kMaxPreemptions;
}

std::uint64_t GroupNeeds::TokensToReserve(const ModelRequest& request) const {
  if (!MayBePreempted(request)) return request.WorstCase();
  const std::uint32_t in_pipeline = config_.pipeline_depth * MostRowsOf(request.arrival);
  const std::uint32_t expected = std::max(expected_.Expect(request.arrival, request.received()),
                                          request.received() + in_pipeline);
  return request.prompt() + std::min(request.arrival.max_new_tokens, expected);
}

std::uint32_t GroupNeeds::BlocksToReserve(const ModelRequest& request) const {
  return Blocks(padded() ? request.prompt() + request.received() : TokensToReserve(request));
}

// Those of its window, and those that a chunk or the decodes in flight write. Both ends may lie
// inside a block.
std::uint32_t GroupNeeds::WindowBlocksFor(std::uint64_t tokens) const {
  if (capacity_.window == 0) return 0;
  const std::uint32_t written = std::max(StepTokens(), config_.pipeline_depth * MostRows());
  return std::min(Blocks(tokens), Blocks(std::uint64_t{capacity_.window} + written) + 1);
}

std::optional<Shortage> GroupNeeds::WhyNever(const Arrival& arrival) const {
  const std::uint64_t worst = arrival.prompt.size() + std::uint64_t{arrival.max_new_tokens};
  const std::uint64_t pool = std::uint64_t{capacity_.blocks} * capacity_.block_size;
  const bool window_is_small = WindowBlocksFor(worst) > capacity_.window_blocks;
  const std::uint64_t in_window =
      window_is_small ? std::uint64_t{capacity_.window_blocks} * capacity_.block_size : 0;
  for (const std::uint64_t limit :
       {std::uint64_t{capacity_.max_sequence_length}, std::uint64_t{config_.max_batch_total_tokens},
        pool, in_window, std::uint64_t{capacity_.cells}}) {
    const bool none = limit == 0 && limit != pool;
    if (!none && worst > limit) return Shortage{Budget::kTotalTokens, worst, limit};
  }
  const std::uint32_t candidates = arrival.sampling.Candidates();
  const std::uint32_t most = std::min(capacity_.max_candidates, StepTokens());
  if (candidates > most) return Shortage{Budget::kStepTokens, candidates, most};
  if (config_.prefill == Prefill::kWhole && arrival.prompt.size() > PrefillTokens()) {
    return Shortage{Budget::kPrefillTokens, arrival.prompt.size(), PrefillTokens()};
  }
  return std::nullopt;
}

bool GroupNeeds::Fits(const ModelRequest& request) const {
  if (WhyNever(request.arrival)) return false;
  return !recovers() || request.generated.empty() || request.arithmetic_class == arithmetic_class_;
}

bool GroupNeeds::NeedsEveryRow(const ModelRequest& request) {
  return request.arrival.logprobs.prompt_logprobs && request.generated.empty();
}

// The length that K and V of the text depend on; 0 up to the original length.
std::uint32_t GroupNeeds::LengthOf(const ModelRequest& request) const {
  const std::uint32_t original = capacity_.original_length;
  const std::uint32_t text = request.prompt() + request.received() + (request.candidates() > 0);
  if (capacity_.length_rule == LengthRule::kRecompute) return text > original ? 1 : 0;
  const bool by_prompt = capacity_.length_rule == LengthRule::kPromptLength;
  return by_prompt && request.prompt() > original ? request.prompt() : 0;
}

std::string GroupNeeds::RootOf(const ModelRequest& request) const {
  const std::uint32_t length = LengthOf(request);
  std::string root = request.arrival.tenant;
  if (length > 0) root += '\0' + std::to_string(length);
  if (!request.arrival.adapter_id.empty())
    root += std::string("\0a", 2) + request.arrival.adapter_id;
  return root;
}

}  // namespace penstock::sim
