#include "sim/checker/snapshot_model.h"

#include <string>

namespace penstock::sim {

void SnapshotModel::Apply(const BlockOp& op, const KvTable& table, std::uint32_t planned,
                          Findings& findings) {
  const auto expect = [&](bool right, const char* what) {
    const std::string sequence = "sequence " + std::to_string(table.sequence.value());
    if (!right) findings.Add("G1", sequence + " " + what);
    return right;
  };
  const bool saves = op.kind == BlockOp::Kind::kSaveState;
  const BlockId id = saves ? op.dst : op.src;
  const std::uint32_t length = saves ? planned : table.cached_length;
  if (!expect(id.value() < snapshots_.size(), "names a snapshot that is not there")) return;
  if (!expect(length > 0, "saves or restores the state of no token")) return;
  Saved& saved = snapshots_[id.value()];
  const History history = table.histories[length - 1];
  if (saves) {
    saved = {history, table.sequence};
  } else {
    expect(saved.history == history, "continues from a snapshot that does not hold its tokens");
  }
}

void SnapshotModel::Invalidate(SequenceId failed) {
  for (Saved& saved : snapshots_) {
    if (saved.writer == failed) saved.history = 0;
  }
}

}  // namespace penstock::sim
