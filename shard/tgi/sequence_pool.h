// Slots and KV blocks of a driver that keeps whole batches. A sequence gets all blocks for its
// prompt and its longest output at once, so it cannot fail later. Each rank of a group allocates by
// itself: the same calls in the same order give the same ids.
//
// Block 0 and one slot are reserved for the health check of TGI's router, which comes with block 0.
// So that check succeeds even if all other slots and blocks are in use.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/kv/block_pool.h"
#include "common/kv/slot_pool.h"

namespace penstock::shard {

class SequencePool {
 public:
  struct Allocation {
    SlotId slot;
    std::vector<BlockId> blocks;
  };

  SequencePool(std::uint32_t slots, std::uint32_t blocks, std::uint32_t block_size);

  // Allocates `tokens` positions. RESOURCE_EXHAUSTED says what is missing and how much.
  absl::StatusOr<Allocation> Take(std::uint32_t tokens, bool health);
  // Frees an allocation. The blocks are free at once, because a plan ends sequences before it
  // starts others. The slot is free at once if the sequence was never `started` in the engine;
  // otherwise TakeEnds gives it to the next plan.
  void Release(const Allocation& allocation, bool started);
  std::vector<SlotId> TakeEnds() { return slots_.TakeEnds(); }

  // Most tokens of all ordinary sequences. As in TGI, block 0 is included.
  std::uint64_t capacity_tokens() const {
    return (std::uint64_t{blocks_.total()} + 1) * block_size_;
  }

 private:
  std::uint32_t block_size_;
  SlotPool slots_;
  BlockPool blocks_;
  bool health_block_free_ = true;
};

}  // namespace penstock::shard
