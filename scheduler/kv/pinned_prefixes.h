// Prefixes that clients asked to keep (`cached_prompt`): each stays in the KV cache beyond the
// requests that use it, exact to the token.
//
// The full blocks of a prefix are nodes of the PrefixIndex, which are pinned. What does not fill a
// block, the tail, stands in the block behind them together with whatever its first user went on
// with. That block is kept as well, and a later request that begins with the prefix copies it and
// writes its own tokens over what is not the prefix. Who has the block of a tail:
//   its first user   while that runs: nobody writes the tail's positions again
//   the index        when the first user filled it: it is pinned like the others
//   the pin          else; it is cached in the pool and in no index
//
// The bounds are on the number of prefixes and on their blocks; the least recently used one goes.
// A pin outlives everything that is merely cached, but it is no promise of memory: when all else is
// evicted and the running need more, pins go, oldest first. So admission need not know of pins, and
// nothing can wait for ever because of one.
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
#include "scheduler/kv/prefix_index.h"
#include "scheduler/output.h"

namespace penstock::scheduler {

struct PinLimits {
  std::uint32_t prefixes = 0;  // 0 = nothing is kept
  std::uint32_t blocks = 0;    // 0 = no bound
};

class PinnedPrefixes {
 public:
  PinnedPrefixes(PrefixIndex& index, std::uint32_t capacity, PinLimits limits);

  // A running sequence whose leading tokens are to be kept.
  struct User {
    RequestId request;
    SequenceId sequence;
    std::string_view tenant;
    std::span<const TokenId> prefix;  // not empty
    std::span<const BlockId> blocks;  // of the sequence, covering the prefix
    StepId step;                      // computes the last of them
  };
  // Keeps the prefix, or notes that one that is kept was used. Blocks that fall out of the index
  // for it are appended to `gone` (as in all that follow).
  void Keep(const User& user, std::vector<BlockId>& gone);

  struct Tail {
    BlockId block;
    std::uint32_t tokens = 0;
  };
  // The kept tail behind the full block `last` (none: at the beginning) that `rest` begins with,
  // readable by step `reader`.
  std::optional<Tail> TailBehind(std::string_view tenant, std::optional<BlockId> last,
                                 std::span<const TokenId> rest, StepId reader) const;

  // While a copy of this tail is being planned, it does not give way.
  void Protect(std::optional<BlockId> tail) { protected_ = tail; }

  // The sequence's blocks are about to be given back.
  void Settle(SequenceId sequence);
  // The block of a tail in no index: it is kept although nobody holds it.
  bool Owns(BlockId block) const { return !own_.empty() && own_[block.value()]; }

  // Drops the least recently used prefix that is not protected. False when there is none.
  bool GiveWay(std::vector<BlockId>& gone);
  // Those of a tenant, or the one that this request made.
  void Forget(std::string_view tenant, std::optional<RequestId> made_by,
              std::vector<BlockId>& gone);
  // Those that rest on spoilt nodes, or whose tail is this failed sequence's.
  void DropSpoilt(std::optional<SequenceId> failed, std::vector<BlockId>& gone);
  void DropAll(std::vector<BlockId>& gone);

  std::vector<PinChange> TakeChanges() { return std::exchange(changes_, {}); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(pins_.size()); }
  std::uint32_t blocks() const { return blocks_; }

 private:
  enum class Holder : std::uint8_t { kNoTail, kSequence, kIndex, kPin };
  struct Pin {
    RequestId made_by;
    std::string tenant;
    std::optional<BlockId> last;  // node of the last full block
    std::vector<TokenId> tail;
    BlockId tail_block;
    Holder holder = Holder::kNoTail;
    SequenceId lender;  // with kSequence
    StepId step;        // computes the tail
    std::uint32_t blocks = 0;
    std::uint32_t tokens = 0;
  };

  void PutTailIntoIndex(Pin& pin);
  void Drop(std::size_t index, std::vector<BlockId>& gone);
  void Note(PinChange::Kind kind, const Pin& pin, RequestId by);

  PrefixIndex& index_;
  const PinLimits limits_;
  std::vector<Pin> pins_;  // least recently used first; few
  std::vector<bool> own_;  // by block: Holder::kPin
  std::optional<BlockId> protected_;
  std::uint32_t blocks_ = 0;
  std::vector<PinChange> changes_;
};

}  // namespace penstock::scheduler
