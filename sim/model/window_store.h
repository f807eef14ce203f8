// The blocks of KV group 1, which has a window, in one group, as scheduler/kv/window_table.h and
// attached_blocks.h describe them. A block may be attached to a node: the number of a block of
// group 0. Like BlockStore it keeps no lists, and block numbers are the model's own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/plan/group.h"

namespace penstock::sim {

using StoreBlock = std::size_t;

// What a sequence holds of the window group. Entry i has the positions of block i of group 0.
struct WindowEntries {
  std::vector<std::optional<StoreBlock>> blocks;  // none before the window
  std::uint32_t claim = 0;
  std::size_t named = 0;  // entries that plans have named
  bool ended = false;     // it claims what it holds

  std::uint32_t held() const;
  std::uint32_t claimed() const { return ended ? held() : claim; }
};

class WindowStore {
 public:
  explicit WindowStore(const GroupCapacity& capacity);

  bool present() const { return window_ > 0; }
  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  // The nodes before a position that must have a block so that a sequence can begin there.
  std::size_t coverage() const { return coverage_; }

  // The block that is attached to a node.
  std::optional<StoreBlock> Of(StoreBlock node) const;
  bool CanRead(StoreBlock node, StepId reader) const;
  // The most nodes of the path that a sequence can begin after.
  std::size_t LongestMatch(std::span<const StoreBlock> path, StepId reader) const;
  // The nodes whose blocks this sequence wrote.
  std::vector<StoreBlock> NodesOf(SequenceId writer) const;

  void Attach(StoreBlock node, std::optional<StoreBlock> block, StepId step, SequenceId writer);
  void Detach(StoreBlock node);
  // The last pin of the node is gone: its block was used last now.
  void Unpin(StoreBlock node);
  // A free block, or the least recently used one whose node is not pinned. None: all are held.
  std::optional<StoreBlock> Draw(const std::function<bool(StoreBlock)>& is_pinned);

  // The sequence begins after these nodes.
  void Adopt(std::span<const StoreBlock> path, WindowEntries& entries);
  // Its later plans begin at or after the position.
  void MoveTo(std::uint64_t position, WindowEntries& entries);
  void Retire(WindowEntries& entries);
  void Reclaim(WindowEntries& entries);

  std::uint32_t free() const;
  std::uint32_t used() const;
  std::uint32_t cached() const;
  std::uint32_t retiring() const;

 private:
  struct Block {
    std::uint32_t holders = 0;  // running
    std::uint32_t ended = 0;
    std::optional<StoreBlock> node;
    StepId step;  // computes its tokens
    SequenceId writer;
    std::uint64_t left_at = 0;  // when its last holder left, or the last pin of its node

    bool idle() const { return holders + ended == 0; }
  };

  void Leave(Block& block);

  const std::uint32_t window_;  // in tokens
  const std::uint32_t block_size_;
  const std::size_t coverage_;
  std::vector<Block> blocks_;
  std::uint64_t clock_ = 0;
};

}  // namespace penstock::sim
