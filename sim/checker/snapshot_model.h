// The checker's model of the snapshots of recurrent states in one replica group: whose state each
// one holds. A sequence may continue only from a snapshot of its own tokens that no failed sequence
// saved.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "sim/checker/findings.h"
#include "sim/checker/kv_model.h"
#include "sim/token_source.h"

namespace penstock::sim {

class SnapshotModel {
 public:
  explicit SnapshotModel(std::uint32_t snapshots) : snapshots_(snapshots) {}

  // The slot of `op` has the table's sequence, whose prompt is planned up to `planned`, this plan
  // included. All restores of a plan come before its saves.
  void Apply(const BlockOp& op, const KvTable& table, std::uint32_t planned, Findings& findings);
  // The sequence failed: what it saved is wrong.
  void Invalidate(SequenceId failed);

 private:
  struct Saved {
    History history = 0;  // 0 = none
    SequenceId writer;
  };

  std::vector<Saved> snapshots_;
};

}  // namespace penstock::sim
