// Slots and KV blocks of a driver that keeps whole batches: a sequence gets all that its prompt and
// its longest output need at once, so nothing fails later. The same calls in the same order give
// the same ids, so each rank of a group allocates for itself.
//
// Block 0 and one slot are never given to ordinary sequences: the health check of TGI's router
// comes with block 0, and finds room while everything else is in use.
//
// One owner: the model thread.
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
  struct Place {
    SlotId slot;
    std::vector<BlockId> blocks;
  };

  SequencePool(std::uint32_t slots, std::uint32_t blocks, std::uint32_t block_size);

  // Room for `tokens` positions. RESOURCE_EXHAUSTED says what is short, by how much.
  absl::StatusOr<Place> Take(std::uint32_t tokens, bool health);
  // The engine never heard of it.
  void PutBack(const Place& place);
  // The engine learns of it by TakeEnds. Its blocks are free at once: ends are applied first.
  void End(const Place& place);
  std::vector<SlotId> TakeEnds() { return slots_.TakeEnds(); }

  // Tokens that all ordinary sequences together may hold, block 0 counted as TGI does.
  std::uint64_t capacity_tokens() const {
    return (std::uint64_t{blocks_.total()} + 1) * block_size_;
  }

 private:
  void Free(const std::vector<BlockId>& blocks);

  std::uint32_t block_size_;
  SlotPool slots_;
  BlockPool blocks_;
  bool health_block_free_ = true;
};

}  // namespace penstock::shard
