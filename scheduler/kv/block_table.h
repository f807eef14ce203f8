// The KV blocks of one sequence in one KV group, in order of position: first the blocks found in
// the prefix cache, then blocks drawn from its own reservation. A block is drawn when a plan first
// needs it, so the pool counts as `used` only what is written.
//
// Leading full blocks enter the prefix index one after another. When the index has the tokens of a
// block already, that block and all later ones stay private: a holder of a node must hold all nodes
// before it. It still follows the nodes with its tokens as long as there are any: the blocks of the
// window group may be missing there (attached_blocks.h).
//
// The owner must call Retire and then Reclaim before it destroys a table that holds blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "scheduler/kv/block_cache.h"

namespace penstock::scheduler {

// Blocks for `tokens` positions.
constexpr std::uint32_t BlocksFor(std::uint64_t tokens, std::uint32_t block_size) {
  return static_cast<std::uint32_t>((tokens + block_size - 1) / block_size);
}

// Adds to `ops` that the table of `slot` in a KV group grows by `blocks`.
void AppendBlocks(std::uint32_t kv_group, SlotId slot, std::span<const BlockId> blocks,
                  std::vector<BlockOp>& ops);

class BlockTable {
 public:
  explicit BlockTable(std::uint32_t kv_group = 0) : kv_group_(kv_group) {}

  // Takes the readable blocks of a match. Must be the first call.
  void Adopt(BlockCache& cache, const PrefixMatch& match);
  // Returns false if the pool cannot reserve that many.
  bool Reserve(BlockCache& cache, std::uint32_t blocks);

  // Draws blocks until they cover `tokens` positions. Adds an append operation for each block that
  // no plan has sent to the shards. The reservation must suffice.
  void GrowTo(BlockCache& cache, std::uint64_t tokens, SlotId slot, std::vector<BlockOp>& ops) {
    // The blocks that the shards have cover most decodes.
    if (tokens > std::uint64_t{appended_} * cache.block_size()) Append(cache, tokens, slot, ops);
  }

  // Whether the next block can enter the index when `tokens` positions are planned or computed.
  bool MayEnter(const BlockCache& cache, std::uint64_t tokens) const {
    return !private_ && (entered_ + std::uint64_t{1}) * cache.block_size() <= tokens;
  }
  // Enters that block, with its tokens and the step that computes the last of them. Returns the
  // node that has these tokens then, if there is one.
  std::optional<BlockId> Enter(BlockCache& cache, std::string_view tenant,
                               std::span<const TokenId> tokens, StepId step);
  // The same for a private block whose tokens may be in the index.
  bool MayFollow(const BlockCache& cache, std::uint64_t tokens) const {
    return same_ && (followed_ + std::uint64_t{1}) * cache.block_size() <= tokens;
  }
  std::optional<BlockId> Follow(const BlockCache& cache, std::span<const TokenId> tokens);
  // The sequence failed: no other request finds the blocks that it computed.
  void Invalidate(BlockCache& cache, SequenceId sequence);

  // The sequence needs no more blocks: the undrawn reservation is given back, and the blocks become
  // retiring. A second call does nothing.
  void Retire(BlockCache& cache);
  // No plan in flight uses the blocks. Those in the index or of a pinned prefix stay cached.
  void Reclaim(BlockCache& cache, SequenceId sequence);

  const std::vector<BlockId>& blocks() const { return blocks_; }
  std::uint32_t reserved() const { return reserved_; }
  // Number of leading blocks that came from the cache, and that are in the index.
  std::uint32_t adopted() const { return adopted_; }
  std::uint32_t entered() const { return entered_; }
  // Number of leading blocks whose tokens were in the index when they were compared.
  std::uint32_t followed() const { return followed_; }
  // The next full block will enter the index, unless its tokens are there already.
  bool enters() const { return !private_; }

 private:
  void Append(BlockCache& cache, std::uint64_t tokens, SlotId slot, std::vector<BlockOp>& ops);

  std::uint32_t kv_group_;
  std::uint32_t reserved_ = 0;  // not drawn yet
  std::uint32_t adopted_ = 0;
  std::uint32_t entered_ = 0;
  std::uint32_t appended_ = 0;   // blocks that plans have sent to the shards
  bool private_ = false;         // no further block enters the index
  std::optional<NodeRef> same_;  // the node of another sequence with the tokens so far
  std::uint32_t followed_ = 0;
  bool retired_ = false;
  std::vector<BlockId> blocks_;
};

}  // namespace penstock::scheduler
