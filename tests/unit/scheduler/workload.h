// A seeded random run of a Scheduler with simulated shards: arrivals, results, cancels, stop
// strings, lost and re-formed groups, in any order that a real system could show.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/scheduler.h"
#include "sim/sim_group.h"
#include "tests/unit/scheduler/invariants.h"

namespace penstock::scheduler {

struct WorkloadOptions {
  std::uint64_t seed = 0;
  Config config;
  GroupCapacity capacity;
  sim::SimGroupOptions shard;
  std::uint32_t groups = 1;
  std::uint32_t inputs = 400;
  bool faults = true;  // cancels, stop strings, lost groups
};

// Draws everything, sizes and settings too, from the seed.
WorkloadOptions RandomOptions(std::uint64_t seed);

class Workload {
 public:
  explicit Workload(const WorkloadOptions& options);

  // Runs to the end: all inputs, then until nothing is in flight.
  void Run();

  const std::vector<Input>& inputs() const { return inputs_; }
  const std::string& transcript() const { return transcript_; }  // of all Outputs
  // Of the invariants and of the shards.
  std::vector<std::string> Violations() const;

 private:
  struct Group {
    Epoch epoch;
    std::unique_ptr<sim::SimGroup> shard;  // null while the group is down
    std::deque<StepResult> results;        // not yet delivered
  };

  std::uint32_t Draw(std::uint32_t below);
  bool OneIn(std::uint32_t n) { return Draw(n) == 0; }
  void Apply(decltype(Input::what) what);
  void RandomInput();
  void Arrive();
  void Hurt();
  void Deliver(GroupId id);
  bool DeliverAny();
  void DeliverLate();
  void BringUp(GroupId id);
  void LoseGroup(GroupId id);

  WorkloadOptions options_;
  std::mt19937_64 random_;
  Scheduler scheduler_;
  Invariants invariants_;
  std::map<GroupId, Group> groups_;
  std::vector<std::pair<GroupId, StepResult>> late_;  // of epochs that are over
  std::vector<std::string> shard_violations_;
  std::vector<RequestId> requests_;
  std::vector<Input> inputs_;
  std::string transcript_;
  Time now_;
};

}  // namespace penstock::scheduler
