// Settings of the core. Fixed for the life of a Scheduler; part of the input log's header.
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
// kMixed: a length that was asked for is promised as under kGuaranteed, one that is only a bound is
// expected as under kOptimistic.
enum class Admission : std::uint8_t { kGuaranteed, kOptimistic, kMixed };
enum class PlacementPolicy : std::uint8_t { kPrefixMatch, kLeastLoaded, kRoundRobin };
enum class Order : std::uint8_t { kFcfs, kLongestPrefix, kPriority, kShortestPredicted };

struct Config {
  std::uint32_t max_step_tokens = 512;         // decode rows + prefill tokens of one step
  std::uint32_t max_batch_prefill_tokens = 0;  // prefill share inside it; 0 = no own bound
  std::uint32_t max_batch_total_tokens = 0;    // reserved tokens of all running; 0 = the pool
  std::uint32_t max_batch_size = 0;            // running sequences; 0 = the group's slots
  std::uint32_t max_waiting_requests = 512;    // queue bound; a further arrival is refused
  std::uint32_t pipeline_depth = 2;            // plans in flight per group
  std::uint32_t max_decode_rows = 1;           // per sequence and step: the newest token and drafts
  Duration target_inter_token{0};              // bounds the prefill share by time; 0 = no bound
  Batching batching = Batching::kContinuous;
  StaticGrouping static_grouping = StaticGrouping::kWindow;
  Prefill prefill = Prefill::kChunked;
  Admission admission = Admission::kGuaranteed;
  Order order = Order::kFcfs;
  bool prefix_caching = true;  // where the group can share blocks
  PlacementPolicy placement = PlacementPolicy::kPrefixMatch;
  std::uint32_t placement_load_permille = 250;  // weight of a group's backlog against a match
  // A waiting request is overtaken at most so often, then it goes first; 0 = max_waiting_requests.
  // Under fcfs nobody is overtaken.
  std::uint32_t max_overtakes = 0;
  // TGI's joining rule, with Prefill::kWhole only (admission_gate.h).
  std::uint32_t waiting_served_permille = 300;
  std::uint32_t max_waiting_tokens = 20;
  // How decode batches are split where attention costs padded cells.
  SplitObjective split = SplitObjective::kCost;
  std::uint32_t max_splits = 3;
  std::uint32_t max_sparsity_ppm = 330'000;
  // Prefixes kept beyond their requests (pinned_prefixes.h), of each group.
  std::uint32_t pinned_prefixes = 10;
  std::uint32_t pinned_blocks = 0;  // 0 = no bound
  friend bool operator==(const Config&, const Config&) = default;
};

// One line with field, limit and value when the core cannot run with these settings. A Scheduler
// must only be made from a configuration that passes.
std::optional<std::string> WhyInvalid(const Config& config);

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

}  // namespace penstock::scheduler
