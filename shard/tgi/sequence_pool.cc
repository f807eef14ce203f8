#include "shard/tgi/sequence_pool.h"

#include <string>

namespace penstock::shard {
namespace {

constexpr BlockId kHealthBlock{0};
constexpr std::uint32_t kHealthSlots = 1;

}  // namespace

SequencePool::SequencePool(std::uint32_t slots, std::uint32_t blocks, std::uint32_t block_size)
    : block_size_(block_size), slots_(slots), blocks_(blocks > 0 ? blocks - 1 : 0, BlockId(1)) {}

absl::StatusOr<SequencePool::Allocation> SequencePool::Take(std::uint32_t tokens, bool health) {
  const std::uint32_t needed = (tokens + block_size_ - 1) / block_size_;
  const bool reserved = health && needed <= 1 && health_block_free_;
  if (slots_.available() <= (reserved ? 0 : kHealthSlots)) {
    return absl::ResourceExhaustedError("no slot is free for another request");
  }
  if (reserved) {
    health_block_free_ = false;
    return Allocation{slots_.Take(), {kHealthBlock}};
  }
  if (blocks_.free() < needed) {
    return absl::ResourceExhaustedError(
        "Out of available cache blocks: asked " + std::to_string(needed) + ", only " +
        std::to_string(blocks_.free()) + " of " + std::to_string(blocks_.total()) + " are free");
  }
  Allocation allocation{slots_.Take(), {}};
  while (allocation.blocks.size() < needed) allocation.blocks.push_back(*blocks_.Allocate());
  return allocation;
}

void SequencePool::Release(const Allocation& allocation, bool started) {
  if (started) {
    slots_.End(allocation.slot);
  } else {
    slots_.PutBack(allocation.slot);
  }
  for (BlockId block : allocation.blocks) {
    if (block == kHealthBlock) {
      health_block_free_ = true;
    } else {
      blocks_.Release(block);
    }
  }
}

}  // namespace penstock::shard
