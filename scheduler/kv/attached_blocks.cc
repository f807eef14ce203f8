#include "scheduler/kv/attached_blocks.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace penstock::scheduler {

AttachedBlocks::AttachedBlocks(std::uint32_t blocks, std::uint32_t nodes, std::uint32_t coverage)
    : pool_(blocks), coverage_(coverage), nodes_(nodes), blocks_(blocks) {}

bool AttachedBlocks::Claim(std::uint32_t count) {
  if (count > available()) return false;
  claimed_ += count;
  return true;
}

void AttachedBlocks::Unclaim(std::uint32_t count) {
  PENSTOCK_CHECK(count <= claimed_, "only claimed blocks are given back");
  claimed_ -= count;
}

BlockId AttachedBlocks::Draw() {
  if (pool_.free() == 0) {
    PENSTOCK_CHECK(oldest_ != kNone, "the caller asked whether it can draw");
    Detach(BlockId(blocks_[oldest_].node));
  }
  return *pool_.Allocate();
}

void AttachedBlocks::Attach(BlockId node, BlockId block, StepId step, SequenceId writer) {
  PENSTOCK_CHECK(pool_.holders(block) > 0, "a sequence attaches a block that it holds");
  Node& at = nodes_[node.value()];
  if (at.block != kNoBlock || blocks_[block.value()].node != kNone) return;
  at = {block, step, writer, at.pins};
  blocks_[block.value()].node = node.value();
}

void AttachedBlocks::Detach(BlockId node) {
  if (nodes_.empty()) return;
  const BlockId block = std::exchange(nodes_[node.value()].block, kNoBlock);
  if (block == kNoBlock) return;
  blocks_[block.value()].node = kNone;
  if (pool_.holders(block) > 0) return;
  if (nodes_[node.value()].pins == 0) Unlink(block);
  pool_.Evict(block);
}

void AttachedBlocks::Pin(BlockId id) {
  const Node& node = nodes_[id.value()];
  const bool listed = node.pins == 0 && node.block != kNoBlock && pool_.holders(node.block) == 0;
  if (listed) Unlink(node.block);
  ++nodes_[id.value()].pins;
}

void AttachedBlocks::Unpin(BlockId id) {
  const Node& node = nodes_[id.value()];
  PENSTOCK_CHECK(node.pins > 0, "a pinned node is unpinned");
  --nodes_[id.value()].pins;
  if (node.pins == 0 && node.block != kNoBlock && pool_.holders(node.block) == 0) {
    Append(node.block);
  }
}

void AttachedBlocks::AppendNodesOf(SequenceId writer, std::vector<BlockId>& nodes) const {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const bool wrote = nodes_[node].block != kNoBlock && nodes_[node].writer == writer;
    if (wrote) nodes.push_back(BlockId(node));
  }
}

bool AttachedBlocks::CanRead(BlockId node, StepId reader) const {
  const Node& attached = nodes_[node.value()];
  return attached.block != kNoBlock && attached.step < reader;
}

std::uint32_t AttachedBlocks::LongestMatch(std::span<const BlockId> path, StepId reader) const {
  std::uint32_t longest = 0;
  std::uint32_t run = 0;  // nodes with a block, up to this one
  for (std::uint32_t i = 0; i < path.size(); ++i) {
    run = CanRead(path[i], reader) ? run + 1 : 0;
    if (run >= std::min(i + 1, coverage_)) longest = i + 1;
  }
  return longest;
}

BlockId AttachedBlocks::Hold(BlockId node) {
  const BlockId block = nodes_[node.value()].block;
  PENSTOCK_CHECK(block != kNoBlock, "a match ends where its attached blocks are present");
  if (pool_.holders(block) == 0 && nodes_[node.value()].pins == 0) Unlink(block);
  pool_.AddHolder(block);
  return block;
}

void AttachedBlocks::Release(BlockId block) {
  pool_.Retire(block);
  RemoveRetiredHolder(block);
}

void AttachedBlocks::Retire(BlockId block) {
  pool_.Retire(block);
  ++retired_;
}

void AttachedBlocks::Reclaim(BlockId block) {
  --retired_;
  Unclaim(1);
  RemoveRetiredHolder(block);
}

void AttachedBlocks::RemoveRetiredHolder(BlockId block) {
  const std::uint32_t node = blocks_[block.value()].node;
  pool_.Reclaim(block, node != kNone);
  if (node != kNone && pool_.holders(block) == 0 && nodes_[node].pins == 0) Append(block);
}

void AttachedBlocks::Append(BlockId id) {
  Block& block = blocks_[id.value()];
  block.older = newest_;
  block.newer = kNone;
  (newest_ == kNone ? oldest_ : blocks_[newest_].newer) = id.value();
  newest_ = id.value();
}

void AttachedBlocks::Unlink(BlockId id) {
  const Block& block = blocks_[id.value()];
  (block.older == kNone ? oldest_ : blocks_[block.older].newer) = block.newer;
  (block.newer == kNone ? newest_ : blocks_[block.newer].older) = block.older;
}

}  // namespace penstock::scheduler
