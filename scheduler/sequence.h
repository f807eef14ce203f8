// One running request on one group: what is planned, what is known, and what may still come back.
//
// With plans in flight the core does not know how many tokens they will yield, only the most: a
// decode of r rows yields 0 … r. Everything that must not be exceeded is counted with the most.
//
//   tokens_received <= tokens that exist <= MostTokens() <= max_new_tokens
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "scheduler/block_table.h"
#include "scheduler/input.h"

namespace penstock::scheduler {

struct Sequence {
  Arrival request;
  SequenceId id;
  SlotId slot;
  BlockTable blocks;

  bool started = false;   // a plan has carried its SequenceStart
  bool chunked = false;   // its prompt was split over steps
  bool retiring = false;  // ended; in no later plan

  std::uint32_t prompt_planned = 0;    // prompt tokens in plans so far
  std::uint32_t tokens_received = 0;   // reported to the client
  std::uint32_t tokens_in_flight = 0;  // the most that plans in flight can yield
  std::uint32_t plans_in_flight = 0;   // that name it
  StepId last_plan;                    // the newest that names it

  std::optional<std::uint32_t> finish_at;  // token count set by the router, not reached yet
  std::vector<float> prompt_logprobs;

  std::uint32_t PromptLength() const { return static_cast<std::uint32_t>(request.prompt.size()); }
  std::uint32_t PromptLeft() const { return PromptLength() - prompt_planned; }
  std::uint32_t MostTokens() const { return tokens_received + tokens_in_flight; }

  // Rows that the next plan may hold for it; 0 while its prompt is not fully planned, or when plans
  // in flight may already finish it.
  std::uint32_t NextDecodeRows(std::uint32_t max_rows) const {
    if (retiring || PromptLeft() > 0) return 0;
    const std::uint32_t last = std::min(request.max_new_tokens, finish_at.value_or(UINT32_MAX));
    return std::min(max_rows, last - std::min(MostTokens(), last));
  }

  // Positions whose K/V may be written once a further decode of `rows` rows has run. The newest
  // token's own K/V are written by the row that follows it, hence - 1.
  std::uint64_t PositionsAfterDecode(std::uint32_t rows) const {
    return std::uint64_t{PromptLength()} + MostTokens() - 1 + rows;
  }
};

}  // namespace penstock::scheduler
