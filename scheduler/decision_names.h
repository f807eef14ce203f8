// Words for decisions and budgets: GET /requests/{id}, metrics.
#pragma once

#include <string_view>

#include "scheduler/config.h"
#include "scheduler/output.h"

namespace penstock::scheduler {

constexpr std::string_view AdmissionName(Admission admission) {
  switch (admission) {
    case Admission::kGuaranteed:
      return "guaranteed";
    case Admission::kOptimistic:
      return "optimistic";
    case Admission::kMixed:
      break;
  }
  return "mixed";
}

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
    case Budget::kGroup:
      break;
  }
  return "group";
}

}  // namespace penstock::scheduler
