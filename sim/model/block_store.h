// The KV blocks of one group, its prefix cache, its pinned prefixes and its snapshots of recurrent
// states, as scheduler/kv/prefix_index.h, pinned_prefixes.h and block_cache.h describe them. Keeps
// no counts and no lists: every question looks at all blocks. Block numbers are the model's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/plan/group.h"
#include "scheduler/config.h"
#include "scheduler/output.h"
#include "sim/model/window_store.h"
#include "sim/token_source.h"

namespace penstock::sim {

using StoreSnapshot = std::size_t;

// A block in the index. It is another one when it leaves the index and enters it again.
struct StoreNode {
  StoreBlock block = 0;
  std::uint64_t number = 0;
};

// What a prompt finds.
struct StoreMatch {
  std::vector<StoreBlock> blocks;   // readable by the step that asks
  std::vector<StoreBlock> planned;  // that this step or a later one computes
  std::size_t found = 0;            // blocks with the tokens, whether or not a sequence can begin
  std::optional<StoreBlock> tail;   // begins with `tail_tokens` further tokens; must be copied
  std::uint32_t tail_tokens = 0;
};

class BlockStore {
 public:
  BlockStore(const scheduler::Config& config, const GroupCapacity& capacity);

  bool sharing() const { return sharing_; }
  // `root`: whose prompts may share blocks.
  StoreMatch Find(const std::string& root, std::span<const TokenId> tokens, StepId reader) const;

  // A sequence begins only where a snapshot is.
  bool recurrent() const { return sharing_ && !snapshots_.empty(); }
  // The snapshot of the block, which a plan restores now.
  StoreSnapshot Restore(StoreBlock block);
  // The snapshot that `step` saves for this prompt of full blocks. None if the last block is not in
  // the index, or has one.
  std::optional<StoreSnapshot> Save(const std::string& root, std::span<const TokenId> tokens,
                                    StepId step, SequenceId writer);
  // No sequence holds the block.
  bool IsIdle(StoreBlock block) const { return blocks_[block].holders + blocks_[block].ended == 0; }

  // A block for a sequence: a free one, or else one that this evicts.
  StoreBlock Draw();
  void Hold(StoreBlock block) { ++blocks_[block].holders; }
  void Retire(StoreBlock block);
  void Reclaim(StoreBlock block);
  // The block is full and has `history` at its end. Returns false if it stays private.
  bool Enter(StoreBlock block, std::optional<StoreBlock> before, History history, StepId step);
  // The valid node with these tokens.
  std::optional<StoreNode> NodeWith(History history) const;
  bool Has(const StoreNode& node) const;
  bool IsInvalid(StoreBlock block) const { return blocks_[block].invalid; }
  // The sequence failed. `first`: the first of the blocks that it entered.
  void Invalidate(std::optional<StoreBlock> first, SequenceId failed);

  void Pin(RequestId request, SequenceId sequence, const std::string& root,
           std::span<const TokenId> prefix, std::span<const StoreBlock> blocks,
           std::span<const std::optional<StoreBlock>> in_window, StepId step);
  void Forget(const std::string& tenant, std::optional<RequestId> made_by);
  void ForgetAll();
  // The next plan copies this tail, so its pin stays.
  void Protect(std::optional<StoreBlock> tail) { protected_ = tail; }
  void EndLoans(SequenceId sequence);
  std::vector<scheduler::PinChange> TakePinChanges() { return std::exchange(changes_, {}); }

  // KV group 1, if there is one.
  WindowStore& window() { return window_; }
  const WindowStore& window() const { return window_; }
  StoreBlock DrawInWindow();

  std::uint32_t idle() const;  // no sequence holds them: free or cached
  std::uint32_t free() const { return idle() - cached(); }
  std::uint32_t used() const;
  std::uint32_t cached() const;
  std::uint32_t retiring() const;
  std::uint64_t TakeEvictions() { return std::exchange(evictions_, 0); }

 private:
  struct Block {
    std::uint32_t holders = 0;         // running
    std::uint32_t ended = 0;           // ended; a plan in flight names them
    std::optional<History> history;    // in the index: of all tokens up to its end
    std::optional<StoreBlock> before;  // in the index
    StepId step;                       // computes its last token
    std::uint64_t number = 0;          // of its entry
    bool invalid = false;
    std::uint64_t left_at = 0;  // when its last holder left, or its last pin
  };
  struct PinnedPrefix {
    RequestId made_by;
    std::string root;
    std::optional<StoreBlock> last;  // its last full block
    std::vector<TokenId> tail;       // in the next block
    std::optional<StoreBlock> tail_block;
    std::optional<SequenceId> lender;  // runs, and holds the block of the tail
    StepId step;
    std::uint32_t blocks = 0;
    std::uint32_t tokens = 0;
    std::vector<StoreBlock> in_window;  // nodes whose attached blocks it keeps
  };

  struct Snapshot {
    std::optional<StoreBlock> block;
    StepId step;  // saves it
    SequenceId writer;
    std::uint64_t used_at = 0;
  };

  std::optional<StoreBlock> InIndex(History history) const;
  // The blocks with these tokens, as far as they are readable.
  StoreMatch Path(const std::string& root, std::span<const TokenId> tokens, StepId reader) const;
  const Snapshot* SnapshotOf(StoreBlock block) const;
  // How many of the blocks a sequence can begin after.
  std::size_t LongestStart(std::span<const StoreBlock> path, StepId reader) const;
  // The number of blocks up to the last one with a snapshot, this one included.
  std::size_t UpToSnapshot(std::span<const StoreBlock> path, StepId reader) const;
  // The block is `end` or before it.
  bool IsBefore(StoreBlock block, std::optional<StoreBlock> end) const;
  bool IsPinned(StoreBlock block) const;
  bool IsCached(StoreBlock block) const;
  bool IsPinnedInWindow(StoreBlock node) const;
  void Detach(StoreBlock block);
  void PinInWindow(PinnedPrefix& pin, std::span<const StoreBlock> path, SequenceId sequence,
                   std::span<const std::optional<StoreBlock>> in_window);
  void InvalidateFrom(StoreBlock first);
  void DropOldestPin();
  void Remove(StoreBlock block);
  void Drop(std::size_t pin);
  void DropInvalidPins(SequenceId failed);
  void Note(scheduler::PinChange::Kind kind, const PinnedPrefix& pin, RequestId by);

  const bool sharing_;
  const scheduler::Config config_;
  const std::uint32_t block_size_;
  std::vector<Block> blocks_;
  WindowStore window_;
  std::vector<Snapshot> snapshots_;
  std::vector<PinnedPrefix> pins_;  // the least recently used first
  std::optional<StoreBlock> protected_;
  std::uint64_t clock_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t evictions_ = 0;
  std::vector<scheduler::PinChange> changes_;
};

}  // namespace penstock::sim
