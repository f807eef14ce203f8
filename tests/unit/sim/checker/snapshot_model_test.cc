#include "sim/checker/snapshot_model.h"

#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

class SnapshotModelTest : public ::testing::Test {
 protected:
  static KvTable Sequence(std::uint64_t id, std::uint32_t cached, std::vector<History> histories) {
    KvTable table;
    table.sequence = SequenceId(id);
    table.cached_length = cached;
    table.histories = std::move(histories);
    return table;
  }
  void Save(std::uint32_t snapshot, const KvTable& table, std::uint32_t planned) {
    BlockOp op;
    op.kind = BlockOp::Kind::kSaveState;
    op.dst = BlockId(snapshot);
    model_.Apply(op, table, planned, findings_);
  }
  // Whether the sequence may continue from the snapshot.
  bool Restores(std::uint32_t snapshot, const KvTable& table) {
    Findings findings;
    BlockOp op;
    op.kind = BlockOp::Kind::kRestoreState;
    op.src = BlockId(snapshot);
    model_.Apply(op, table, table.cached_length, findings);
    return findings.empty();
  }

  SnapshotModel model_{2};
  Findings findings_;
};

TEST_F(SnapshotModelTest, ASequenceContinuesFromItsOwnTokens) {
  Save(1, Sequence(1, 0, {11, 12, 13}), 2);
  EXPECT_TRUE(findings_.empty());
  EXPECT_TRUE(Restores(1, Sequence(2, 2, {11, 12, 99})));
  EXPECT_FALSE(Restores(1, Sequence(3, 1, {11, 12})));
  EXPECT_FALSE(Restores(0, Sequence(4, 2, {11, 12}))) << "nothing was saved there";
}

TEST_F(SnapshotModelTest, WhatAFailedSequenceSavedIsWrong) {
  Save(0, Sequence(1, 0, {11, 12}), 2);
  Save(1, Sequence(2, 0, {21, 22}), 2);
  model_.Invalidate(SequenceId(1));
  EXPECT_FALSE(Restores(0, Sequence(3, 2, {11, 12})));
  EXPECT_TRUE(Restores(1, Sequence(4, 2, {21, 22})));
}

TEST_F(SnapshotModelTest, ASnapshotThatIsNotThereIsFound) {
  Save(2, Sequence(1, 0, {11}), 1);
  EXPECT_FALSE(findings_.empty());
}

TEST_F(SnapshotModelTest, AStateOfNoTokenIsFound) {
  Save(0, Sequence(1, 0, {11}), 0);
  EXPECT_FALSE(findings_.empty());
}

}  // namespace
}  // namespace penstock::sim
