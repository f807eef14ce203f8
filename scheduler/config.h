// Settings of the scheduler. They do not change while a Scheduler exists, and are part of the
// header of an input log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/time.h"
#include "scheduler/step/batch_splitter.h"

namespace penstock::scheduler {

enum class Batching : std::uint8_t { kNone, kStatic, kContinuous };
// Which requests share a batch under Batching::kStatic (static_batch.h).
enum class StaticGrouping : std::uint8_t { kWindow, kEqual };
enum class Prefill : std::uint8_t { kChunked, kWhole };
// kMixed: kGuaranteed for requests with a length of their own, kOptimistic for others.
enum class AdmissionMode : std::uint8_t { kGuaranteed, kOptimistic, kMixed };
enum class PlacementPolicy : std::uint8_t { kPrefixMatch, kLeastLoaded, kRoundRobin };
enum class Order : std::uint8_t {
  kFcfs,
  kLongestPrefix,
  kPriority,
  kShortestPredicted,
  kLearned,
};

struct Config {
  std::uint32_t max_step_tokens = 512;         // decode rows + prefill tokens of one step
  std::uint32_t max_batch_prefill_tokens = 0;  // of these, prefill tokens; 0 = no limit
  std::uint32_t max_batch_total_tokens = 0;    // reserved by running sequences; 0 = no limit
  std::uint32_t max_batch_size = 0;            // running sequences; 0 = the group's slots
  std::uint32_t max_waiting_requests = 512;    // further requests are refused
  std::uint32_t pipeline_depth = 2;            // plans in flight, for each group
  std::uint32_t max_decode_rows = 1;           // of a sequence in a step: one, and drafts
  Duration target_inter_token{0};              // limits prefill by time; 0 = no limit
  Batching batching = Batching::kContinuous;
  StaticGrouping static_grouping = StaticGrouping::kWindow;
  Prefill prefill = Prefill::kChunked;
  AdmissionMode admission = AdmissionMode::kGuaranteed;
  Order order = Order::kFcfs;
  bool prefix_caching = true;  // if the group can share blocks
  PlacementPolicy placement = PlacementPolicy::kPrefixMatch;
  std::uint32_t placement_load_permille = 250;  // weight of a group's backlog
  // How often a waiting request may be overtaken; 0 = max_waiting_requests. fcfs never allows it.
  std::uint32_t max_overtakes = 0;
  // Order::kLearned. A request that waited this many steps is due: it is next; 0 = never. It gives
  // its place to another one that is due after this many tokens.
  std::uint32_t starvation_steps = 1000;
  std::uint32_t starvation_quantum = 10;
  // TGI's rule for admissions, with Prefill::kWhole only (admission_gate.h).
  std::uint32_t waiting_served_permille = 300;
  std::uint32_t max_waiting_tokens = 20;
  // How decode batches are split if attention is padded (batch_splitter.h).
  SplitObjective split = SplitObjective::kCost;
  std::uint32_t max_splits = 3;
  std::uint32_t max_sparsity_ppm = 330'000;
  // Limits of each group for pinned prefixes (pinned_prefixes.h).
  std::uint32_t pinned_prefixes = 10;
  std::uint32_t pinned_blocks = 0;  // 0 = no limit
  // How long a request whose group was lost waits for a group that can continue it. 0: it fails
  // with its group.
  Duration recovery_timeout{0};
  friend bool operator==(const Config&, const Config&) = default;
};

// Why the settings are invalid: one line with field, limit and value. A Scheduler must be made from
// valid settings.
std::optional<std::string> WhyInvalid(const Config& config);

constexpr std::string_view AdmissionName(AdmissionMode admission) {
  switch (admission) {
    case AdmissionMode::kGuaranteed:
      return "guaranteed";
    case AdmissionMode::kOptimistic:
      return "optimistic";
    case AdmissionMode::kMixed:
      break;
  }
  return "mixed";
}

}  // namespace penstock::scheduler
