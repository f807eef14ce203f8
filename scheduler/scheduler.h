// The scheduler: inputs in; plans, events and decisions out. Pure: no thread, clock, socket, log or
// protobuf. All arithmetic is integer (nanoseconds, tokens, blocks), so the same inputs give the
// same outputs on every compiler.
//
// Guarantees G1 to G11 are listed in docs/scheduling-guarantees.md and asserted here.
//
// Not synchronised. The caller owns Outputs, and Apply appends to them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/time.h"
#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::scheduler {

// Sums over all groups, for gauges and idle checks.
struct Snapshot {
  std::uint32_t waiting = 0;
  // Waiting requests by recorded reason. kNone: no reason yet, the next step examines them.
  std::array<std::uint32_t, kBudgets> waiting_for{};
  std::uint32_t running = 0;      // admitted, not yet terminal
  std::uint32_t retiring = 0;     // ended; a plan in flight refers to them
  std::uint32_t blocks_free = 0;  // of KV group 0
  std::uint32_t blocks_used = 0;
  std::uint32_t blocks_cached = 0;
  std::uint32_t blocks_retiring = 0;
  std::uint32_t blocks_total = 0;
  std::uint32_t window_blocks_free = 0;  // of KV group 1, which has a window
  std::uint32_t window_blocks_used = 0;
  std::uint32_t window_blocks_cached = 0;
  std::uint32_t window_blocks_retiring = 0;
  std::uint32_t window_blocks_total = 0;
  std::uint32_t plans_in_flight = 0;
};

class Scheduler {
 public:
  explicit Scheduler(Config config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Applies one input. Time must not run backwards. An unknown id is no error and is ignored: a
  // result may be late, and a request may end before its cancellation arrives.
  void Apply(const Input& input, Outputs& out);

  // When Apply must be called at the latest, with a Tick if there is no other input.
  std::optional<Time> NextDeadline() const;

  Snapshot Inspect() const;
  // The state of one group; all zero when it is not up. Requests wait in no group.
  Snapshot InspectGroup(GroupId group) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::scheduler
