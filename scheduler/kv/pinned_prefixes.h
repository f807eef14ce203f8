// Prefixes that clients asked to keep (`cached_prompt`). They stay in the KV cache after the
// requests that use them, exact to the token.
//
// The full blocks of a prefix are nodes of the PrefixIndex, which are pinned. The rest, the tail,
// is in the next block, together with later tokens of its first user. That block is kept too. A
// later request that begins with the prefix copies it and overwrites what is not the prefix. The
// block of a tail belongs to
//   its first user   while that runs; no plan writes the tail's positions again
//   the index        if the first user filled the block; it is pinned like the others
//   the pin          otherwise; it is cached in the pool and not in the index
//
// The number of prefixes and of their blocks is bounded; the least recently used prefix is dropped
// first. Pins outlive everything that is only cached, but they reserve no memory. When nothing else
// can be evicted and running sequences need blocks, the oldest pin is dropped. So admission ignores
// pins, and no request waits for one.
//
// Deterministic. Not synchronised; one owner, BlockCache.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "scheduler/kv/attached_blocks.h"
#include "scheduler/kv/prefix_index.h"
#include "scheduler/output.h"

namespace penstock::scheduler {

struct PinLimits {
  std::uint32_t prefixes = 0;  // 0 = no prefix is pinned
  std::uint32_t blocks = 0;    // 0 = no bound
};

class PinnedPrefixes {
 public:
  // `window`: of the KV group with a window; null if there is none. The blocks that a sequence
  // reads after the prefix are pinned there.
  PinnedPrefixes(PrefixIndex& index, AttachedBlocks* window, std::uint32_t capacity,
                 PinLimits limits);

  // A running sequence whose leading tokens are to be pinned.
  struct User {
    RequestId request;
    SequenceId sequence;
    std::string_view tenant;          // TextRegime::Root
    std::span<const TokenId> prefix;  // not empty
    std::span<const BlockId> blocks;  // of the sequence, covering the prefix
    std::span<const BlockId> window_blocks;
    StepId step;  // computes the last of them
  };
  // Pins the prefix, or records a use of it. Appends blocks that leave the index to `dropped`, as
  // all functions below do.
  void Pin(const User& user, std::vector<BlockId>& dropped);

  struct Tail {
    BlockId block;
    std::uint32_t tokens = 0;
  };
  // The longest pinned tail after the full block `last` (none: at the beginning) with which `rest`
  // begins and which step `reader` can read.
  std::optional<Tail> TailAfter(std::string_view tenant, std::optional<BlockId> last,
                                std::span<const TokenId> rest, StepId reader) const;

  // The plan being composed copies this tail, so EvictOldest skips it.
  void Protect(std::optional<BlockId> tail) { protected_ = tail; }

  // The blocks of the sequence are about to be reclaimed.
  void BeginReclaim(SequenceId sequence);
  // The block is a tail that belongs to a pin: it stays cached without a holder.
  bool Owns(BlockId block) const { return !own_.empty() && own_[block.value()]; }

  // Drops the least recently used prefix that is not protected. Returns false if there is none.
  bool EvictOldest(std::vector<BlockId>& dropped);
  // Drops those of a tenant, or the one that this request made.
  void Forget(std::string_view tenant, std::optional<RequestId> made_by,
              std::vector<BlockId>& dropped);
  // Drops those with invalid nodes, or with a tail of this failed sequence.
  void DropInvalid(std::optional<SequenceId> failed, std::vector<BlockId>& dropped);
  void DropAll(std::vector<BlockId>& dropped);

  std::vector<PinChange> TakeChanges() { return std::exchange(changes_, {}); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(pins_.size()); }
  std::uint32_t blocks() const { return blocks_; }

 private:
  enum class Holder : std::uint8_t { kNoTail, kSequence, kIndex, kPin };
  struct Entry {
    RequestId made_by;
    std::string tenant;
    std::optional<BlockId> last;  // node of the last full block
    std::vector<TokenId> tail;
    BlockId tail_block;
    Holder holder = Holder::kNoTail;
    SequenceId lender;  // with kSequence: its sequence
    StepId step;        // computes the tail
    std::uint32_t blocks = 0;
    std::uint32_t tokens = 0;
    std::vector<BlockId> in_window;  // nodes and the tail's block, pinned in the window group
  };

  void PinWindow(Entry& pin, const User& user);
  void PutTailIntoIndex(Entry& pin);
  void Drop(std::size_t index, std::vector<BlockId>& dropped);
  void Note(PinChange::Kind kind, const Entry& pin, RequestId by);

  PrefixIndex& index_;
  AttachedBlocks* const window_;
  const PinLimits limits_;
  std::vector<Entry> pins_;  // least recently used first; few
  std::vector<bool> own_;    // by block: Holder::kPin
  std::optional<BlockId> protected_;
  std::uint32_t blocks_ = 0;
  std::vector<PinChange> changes_;
};

}  // namespace penstock::scheduler
