// The pure core: inputs in; plans, events and decisions out. No thread, clock, socket, log or
// protobuf. All arithmetic is integer (nanoseconds, tokens, blocks), so the same inputs give the
// same outputs on every compiler.
//
// Guarantees G1-G9 are listed in docs/scheduling-guarantees.md and asserted here.
//
// Threading: one owner thread; not synchronised. Ownership: Outputs are the caller's; Apply
// appends.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::scheduler {

// Sums over all groups, for gauges and idle checks.
struct Snapshot {
  std::uint32_t waiting = 0;
  // Of those, by the reason recorded last; kNone: the next step will tell.
  std::array<std::uint32_t, kBudgets> waiting_for{};
  std::uint32_t running = 0;   // admitted, not yet terminal
  std::uint32_t retiring = 0;  // terminal, still named by a plan in flight
  std::uint32_t blocks_free = 0;
  std::uint32_t blocks_used = 0;
  std::uint32_t blocks_cached = 0;
  std::uint32_t blocks_retiring = 0;
  std::uint32_t blocks_total = 0;
  std::uint32_t plans_in_flight = 0;
};

class Scheduler {
 public:
  explicit Scheduler(Config config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Applies one input. Time must not run backwards. Unknown ids (late results of an old epoch,
  // cancels of finished requests) are ignored: they are races, not errors.
  void Apply(const Input& input, Outputs& out);

  Snapshot Inspect() const;
  // Of one group; all zero when it is not up. Nothing waits in a group.
  Snapshot InspectGroup(GroupId group) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::scheduler
