// The checker's model of the KV blocks of one replica group: KV group 0, and the group with a
// window if there is one, with the snapshots of recurrent states. See kv_model.h. GroupModel tells
// it of each change of a sequence.
#pragma once

#include <cstdint>

#include "common/plan/group.h"
#include "common/plan/step_plan.h"
#include "scheduler/config.h"
#include "scheduler/output.h"
#include "sim/checker/findings.h"
#include "sim/checker/kv_model.h"
#include "sim/checker/snapshot_model.h"

namespace penstock::sim {

class GroupKv {
 public:
  GroupKv(const scheduler::Config& config, const GroupCapacity& capacity);

  void Apply(const BlockOp& op, KvTable& table, Findings& findings);
  // Applies an operation on a snapshot (snapshot_model.h).
  void ApplyState(const BlockOp& op, const KvTable& table, std::uint32_t planned,
                  Findings& findings) {
    snapshots_.Apply(op, table, planned, findings);
  }
  void Write(const KvTable& table, std::uint32_t position, Findings& findings);
  // This plan and all later ones of the sequence begin at or after the position. Plans run in
  // order, so other sequences may write blocks before the window in this plan.
  void MoveTo(KvTable& table, std::uint64_t position);
  void CheckPrefix(const KvTable& table, Findings& findings) const;
  void NeedPositions(const KvTable& table, std::uint64_t positions, Findings& findings) const;
  // Checks that the sequence holds no more of the window group than its window needs.
  void CheckBound(const KvTable& table, Findings& findings) const;
  void CheckStep(const scheduler::StepInfo& info, Findings& findings) const;

  void Invalidate(const KvTable& table);
  void Retire(const KvTable& table);
  void Reclaim(const KvTable& table);

  const KvModel& full() const { return full_; }
  const KvModel& window() const { return window_; }
  std::size_t Held(const KvTable& table) const {
    return table.blocks.size() + (window_.window() > 0 ? window_.Held(table) : 0);
  }
  // The largest number of window blocks that a sequence of `tokens` tokens holds at any time: those
  // of its window and those that its plans in flight write.
  std::uint64_t WindowBlocksFor(std::uint64_t tokens) const;

 private:
  KvModel full_;
  KvModel window_;
  SnapshotModel snapshots_;
  std::uint64_t most_window_blocks_ = 0;
};

}  // namespace penstock::sim
