// Blocks of a second pool that belong to nodes of the prefix index: what a sequence needs beside
// the blocks of the index when it begins after a match. For layers with a window they are the KV
// blocks with the tokens of the nodes.
//
// A match needs the attached blocks of its last `coverage` nodes, or of all its nodes if there are
// fewer. LongestMatch returns the most nodes for which this holds.
//
//   held      sequences use the block
//   cached    attached to a node and held by none. Cached blocks form a list, the least recently
//             used first. Draw evicts the first one when no block is free. Blocks of pinned nodes
//             are not in the list.
//   free      neither
//
// A node has one block at most. A node that leaves the index loses its block.
//
// Claims: a sequence claims as many blocks as it ever holds at once, also those that it shares: it
// replaces them as its window moves on. When it ends, each block that it holds stays claimed until
// no plan in flight reads it. Claims never exceed the pool, so a sequence that holds less than it
// claimed can draw once enough nodes are unpinned.
//
// A node has the number of its block in the index. Deterministic. Not synchronised; one owner,
// BlockCache.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/kv/block_pool.h"
#include "common/plan/step_plan.h"

namespace penstock::scheduler {

class AttachedBlocks {
 public:
  // `nodes`: the capacity of the index.
  AttachedBlocks(std::uint32_t blocks, std::uint32_t nodes, std::uint32_t coverage);

  const BlockPool& pool() const { return pool_; }
  // Blocks that can still be claimed.
  std::uint32_t available() const { return pool_.total() - claimed_; }
  // Blocks that will be available when all results in flight are here.
  std::uint32_t returning() const { return retired_; }
  // Returns false if fewer are available.
  bool Claim(std::uint32_t count);
  void Unclaim(std::uint32_t count);

  // Whether a block is free or can be evicted.
  bool CanDraw() const { return pool_.free() > 0 || oldest_ != kNone; }
  // Draws a block inside a claim; evicts one if none is free.
  BlockId Draw();
  // The block, which the writer holds, has the tokens of the node after `step`. Does nothing if the
  // node has a block, or the block a node.
  void Attach(BlockId node, BlockId block, StepId step, SequenceId writer);
  // The node leaves the index, or its block must not be found.
  void Detach(BlockId node);
  // Appends the nodes whose blocks this sequence wrote.
  void AppendNodesOf(SequenceId writer, std::vector<BlockId>& nodes) const;

  // The block of a pinned node is not evicted.
  void Pin(BlockId node);
  void Unpin(BlockId node);

  std::uint32_t coverage() const { return coverage_; }
  // Whether step `reader` can read the block of the node.
  bool CanRead(BlockId node, StepId reader) const;
  // kNoBlock if the node has none.
  BlockId BlockOf(BlockId node) const { return nodes_[node.value()].block; }
  // The number of nodes of the longest beginning of `path` that step `reader` can continue.
  std::uint32_t LongestMatch(std::span<const BlockId> path, StepId reader) const;

  // Adds a holder to the block of a node, inside a claim.
  BlockId Hold(BlockId node);
  // Removes a holder. No plan after those that were made reads the block for it.
  void Release(BlockId block);
  // A sequence ends (BlockPool). Reclaim ends the claim to the block.
  void Retire(BlockId block);
  void Reclaim(BlockId block);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Node {
    BlockId block = kNoBlock;
    StepId step;
    SequenceId writer;
    std::uint32_t pins = 0;
  };
  struct Block {
    std::uint32_t node = kNone;
    std::uint32_t older = kNone;  // neighbours in the list of cached blocks
    std::uint32_t newer = kNone;
  };

  void RemoveRetiredHolder(BlockId block);
  void Append(BlockId block);  // to the list of cached blocks
  void Unlink(BlockId block);

  BlockPool pool_;
  const std::uint32_t coverage_;
  std::vector<Node> nodes_;
  std::vector<Block> blocks_;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint32_t claimed_ = 0;
  std::uint32_t retired_ = 0;  // of these, by sequences that ended
};

}  // namespace penstock::scheduler
