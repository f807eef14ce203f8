// What a request needs of one replica group, by the settings and the group's capacity: how much it
// reserves, and whether it ever fits (docs/scheduling-admission.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/plan/group.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"
#include "scheduler/input.h"
#include "sim/model/expected_lengths.h"
#include "sim/model/model_sequence.h"

namespace penstock::sim {

class GroupNeeds {
 public:
  // `lengths` must outlive the object.
  GroupNeeds(const scheduler::Config& config, const scheduler::GroupUp& up,
             const ExpectedLengths& lengths)
      : config_(config),
        capacity_(up.capacity),
        arithmetic_class_(up.arithmetic_class),
        expected_(lengths) {}

  std::optional<scheduler::Shortage> WhyNever(const scheduler::Arrival& arrival) const;
  // It can compute the request, and the bits of its output so far.
  bool Fits(const ModelRequest& request) const;

 protected:
  bool recovers() const { return config_.recovery_timeout > Duration(0); }
  bool padded() const { return capacity_.cells > 0; }
  std::uint32_t StepTokens() const;
  std::uint32_t PrefillTokens() const;
  std::uint32_t Blocks(std::uint64_t positions) const;
  // The most rows of a decode of the request, and of any, without candidates.
  std::uint32_t MostRowsOf(const scheduler::Arrival& arrival) const;
  std::uint32_t MostRows() const;
  // The most blocks of the window group that a sequence of `tokens` holds at any time.
  std::uint32_t WindowBlocksFor(std::uint64_t tokens) const;

  static bool NeedsEveryRow(const ModelRequest& request);
  bool MayBePreempted(const ModelRequest& request) const;
  std::uint64_t TokensToReserve(const ModelRequest& request) const;
  std::uint32_t BlocksToReserve(const ModelRequest& request) const;
  std::uint32_t LengthOf(const ModelRequest& request) const;
  // Which prompts may share blocks: those of one tenant and, with a length rule, of one kind of
  // text (common/plan/group.h).
  std::string RootOf(const ModelRequest& request) const;

  const scheduler::Config config_;
  const GroupCapacity capacity_;
  const std::uint64_t arithmetic_class_;

 private:
  const ExpectedLengths& expected_;
};

}  // namespace penstock::sim
