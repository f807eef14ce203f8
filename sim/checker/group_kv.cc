#include "sim/checker/group_kv.h"

#include <algorithm>
#include <string>

namespace penstock::sim {
namespace {

std::uint64_t MostWindowBlocks(const scheduler::Config& config, const GroupCapacity& capacity) {
  if (capacity.window == 0) return 0;
  const std::uint32_t chunk = std::min(config.max_step_tokens, capacity.max_step_tokens);
  const std::uint32_t rows = std::max(config.max_decode_rows, 1 + capacity.forced_tokens);
  const std::uint32_t decodes = config.pipeline_depth * rows;
  return BlocksFor(capacity.window + std::max(chunk, decodes), capacity.block_size) + 1;
}

}  // namespace

GroupKv::GroupKv(const scheduler::Config& config, const GroupCapacity& capacity)
    : full_(capacity.blocks, capacity.block_size),
      window_(capacity.window_blocks, capacity.block_size, capacity.window),
      snapshots_(capacity.snapshots),
      most_window_blocks_(MostWindowBlocks(config, capacity)) {}

void GroupKv::Apply(const BlockOp& op, KvTable& table, Findings& findings) {
  if (op.kv_group > (window_.window() > 0 ? 1 : 0)) {
    return findings.Add("G1", "a block of KV group " + std::to_string(op.kv_group));
  }
  KvModel& model = op.kv_group == 0 ? full_ : window_;
  if (op.kind == BlockOp::Kind::kAppend) {
    model.Append(table, op.dst, findings);
  } else {
    model.Copy(op.src, op.dst, table, findings);
  }
}

void GroupKv::Write(const KvTable& table, std::uint32_t position, Findings& findings) {
  full_.Write(table, position, findings);
  if (window_.window() > 0) window_.Write(table, position, findings);
}

void GroupKv::MoveTo(KvTable& table, std::uint64_t position) {
  if (window_.window() > 0) window_.MoveTo(table, position);
}

void GroupKv::CheckPrefix(const KvTable& table, Findings& findings) const {
  full_.CheckPrefix(table, findings);
  if (window_.window() > 0) window_.CheckPrefix(table, findings);
}

void GroupKv::NeedPositions(const KvTable& table, std::uint64_t positions,
                            Findings& findings) const {
  full_.NeedPositions(table, positions, findings);
  if (window_.window() > 0) window_.NeedPositions(table, positions, findings);
}

void GroupKv::CheckBound(const KvTable& table, Findings& findings) const {
  if (window_.window() == 0 || window_.Held(table) <= most_window_blocks_) return;
  findings.Add("G7", "sequence " + std::to_string(table.sequence.value()) + " holds " +
                         std::to_string(window_.Held(table)) +
                         " blocks of its window; the bound is " +
                         std::to_string(most_window_blocks_));
}

void GroupKv::CheckStep(const scheduler::StepInfo& info, Findings& findings) const {
  const auto check = [&findings](const KvModel& kv, const char* what, std::uint32_t used,
                                 std::uint32_t retiring, std::uint32_t rest) {
    const std::uint32_t unheld = kv.total() - kv.used() - kv.retiring();
    if (used == kv.used() && retiring == kv.retiring() && rest == unheld) return;
    findings.Add("G1", std::string("StepInfo has other numbers of ") + what);
  };
  check(full_, "blocks", info.blocks_used, info.blocks_retiring,
        info.blocks_free + info.blocks_cached);
  check(window_, "window blocks", info.window_blocks_used, info.window_blocks_retiring,
        info.window_blocks_free + info.window_blocks_cached);
}

void GroupKv::Invalidate(const KvTable& table) {
  snapshots_.Invalidate(table.sequence);
  full_.Invalidate(table);
  if (window_.window() > 0) window_.Invalidate(table);
}

void GroupKv::Retire(const KvTable& table) {
  full_.Retire(table);
  if (window_.window() > 0) window_.Retire(table);
}

void GroupKv::Reclaim(const KvTable& table) {
  full_.Reclaim(table);
  if (window_.window() > 0) window_.Reclaim(table);
}

std::uint64_t GroupKv::WindowBlocksFor(std::uint64_t tokens) const {
  return std::min(BlocksFor(tokens, window_.block_size()), most_window_blocks_);
}

}  // namespace penstock::sim
