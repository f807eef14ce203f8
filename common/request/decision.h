// Why the scheduler did what it did to a request. Kept per request in a ring and served at
// GET /requests/{id}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/ids.h"
#include "common/time.h"

namespace penstock {

enum class DecisionKind : std::uint8_t {
  kQueued,
  kAdmitted,
  kDeferred,
  kChunked,
  kSplit,
  kPreempted,
  kLost,  // its group was lost; it is queued again
  kRefused,
  kRetired,
  kFinished,
};

constexpr std::size_t kDecisionKinds = 10;

// What was short, when a decision says "not now".
enum class Budget : std::uint8_t {
  kNone,
  kStepTokens,
  kPrefillTokens,
  kTotalTokens,
  kBlocks,
  kSlots,
  kBatchSize,
  kQueue,
  kOrder,     // an earlier request must go first
  kGroup,     // no group is up
  kStepTime,  // in tokens: what fits into the target time of a step
  kPrefix,    // prompt tokens that another request is about to compute
  kJoinSize,  // requests that join together; TGI's waiting_served_ratio
  kCells,     // of the padded KV layout, for the worst lengths of all rows (padded_bound.h)
  // kPreempted: the text passes the original length of longrope and is computed again.
  kOriginalLength,
  kAlone,  // a suspect runs alone on its group
};
constexpr std::size_t kBudgets = 16;

struct Decision {
  Time at;
  RequestId request;
  DecisionKind kind = DecisionKind::kQueued;
  Budget short_of = Budget::kNone;
  std::uint64_t needed = 0;     // in the budget's unit; kSplit: parts of the batch; kLost: losses
  std::uint64_t available = 0;  // kSplit: its part, from 0
  std::optional<RequestId> behind;  // who holds what is needed, or goes first
  std::optional<GroupId> group;     // where it has, or had, a place
  std::optional<StepId> step;       // of that group
};

// Names as GET /requests/{id}, logs and metrics show them.
constexpr std::string_view DecisionName(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kQueued:
      return "queued";
    case DecisionKind::kAdmitted:
      return "admitted";
    case DecisionKind::kDeferred:
      return "deferred";
    case DecisionKind::kChunked:
      return "chunked";
    case DecisionKind::kSplit:
      return "split";
    case DecisionKind::kPreempted:
      return "preempted";
    case DecisionKind::kLost:
      return "lost";
    case DecisionKind::kRefused:
      return "refused";
    case DecisionKind::kRetired:
      return "retired";
    case DecisionKind::kFinished:
      break;
  }
  return "finished";
}

constexpr std::string_view BudgetName(Budget budget) {
  switch (budget) {
    case Budget::kNone:
      return "none";
    case Budget::kStepTokens:
      return "step_tokens";
    case Budget::kPrefillTokens:
      return "prefill_tokens";
    case Budget::kTotalTokens:
      return "total_tokens";
    case Budget::kBlocks:
      return "blocks";
    case Budget::kSlots:
      return "slots";
    case Budget::kBatchSize:
      return "batch_size";
    case Budget::kQueue:
      return "queue";
    case Budget::kOrder:
      return "order";
    case Budget::kStepTime:
      return "step_time";
    case Budget::kJoinSize:
      return "join_size";
    case Budget::kPrefix:
      return "prefix";
    case Budget::kCells:
      return "cells";
    case Budget::kOriginalLength:
      return "original_length";
    case Budget::kAlone:
      return "alone";
    case Budget::kGroup:
      break;
  }
  return "group";
}

}  // namespace penstock
