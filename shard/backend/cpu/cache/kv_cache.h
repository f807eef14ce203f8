// K and V in the order of HeadCache (kernels.h): for each K/V head of each layer a plane, an array
// of blocks that are K, then V, which are read one after the other. So what a query reads lies in
// one piece where a sequence's blocks follow each other, as those of a prompt mostly do: memory
// gives that up to 1.6 times as fast as pieces of one block. Behind them the hidden-state plane, if
// there is one: blocks that hold keys only.
//
// Every array has `spare` blocks behind those of the sequences: candidates of contrastive search
// keep theirs there until one is chosen.
#pragma once

#include <absl/status/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shard/backend/cpu/cache/first_touch.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

class KvCache {
 public:
  // Zeroed; replaces the former contents first. In memory are then the spare blocks, the first
  // ones, which schedulers use first, at least one unit of each plane, and `touched` bytes in all;
  // a thread behind everything else touches the others. ResourceExhausted.
  absl::Status Allocate(const PagedLayout& layout, std::uint32_t blocks, std::uint32_t spare,
                        WorkerPool& pool, std::size_t touched = SIZE_MAX);

  // Until all of it is in memory.
  void AwaitTouch() {
    if (touch_ != nullptr) touch_->Await();
  }

  // Around a step, with the highest block that it uses: beside steps the cache is touched up to
  // there, and as much beyond as was at first.
  void StepBegins(std::uint32_t highest_block);
  void StepEnds() {
    if (touch_ != nullptr) touch_->StepEnds();
  }

  std::uint32_t blocks() const { return blocks_; }
  std::uint32_t block_size() const { return layout_.block_size; }
  std::uint64_t MemoryBytes() const { return region_.bytes(); }

  HeadCache Head(std::size_t layer, std::size_t head) const;
  bool has_hidden() const { return layout_.hidden > 0; }
  HeadCache Hidden() const;
  void CopyBlock(std::uint32_t src, std::uint32_t dst);

 private:
  void Touch(WorkerPool& pool, std::size_t touched);
  // Of the blocks [first, end) of all planes, those that are not marked yet; marks them.
  void AddUnits(std::size_t first, std::size_t end, std::vector<bool>& marked,
                std::vector<std::uint32_t>& units) const;
  std::size_t Planes() const { return std::size_t{layout_.layers} * layout_.kv_heads; }
  // Of a plane.
  std::size_t BlockBytes() const {
    return 2 * layout_.block_size * KvHeadBytes(layout_.kv_type, layout_.dtype, layout_.head_dim);
  }
  // Blocks of a plane that are touched together.
  std::size_t BlocksOfUnit() const {
    return std::max<std::size_t>(1, kTouchUnit / std::max<std::size_t>(1, BlockBytes()));
  }
  std::size_t HiddenBlockBytes() const {
    return layout_.HiddenBytesPerToken() * layout_.block_size;
  }
  std::byte* Block(std::size_t plane, std::size_t block) const {
    return region_.data() + (plane * all_blocks_ + block) * BlockBytes();
  }
  std::byte* HiddenPlane() const { return Block(Planes(), 0); }

  PagedLayout layout_;
  std::uint32_t blocks_ = 0;
  std::uint32_t all_blocks_ = 0;  // and spare ones
  MemoryRegion region_;
  std::size_t units_ = 0;              // to touch
  std::unique_ptr<FirstTouch> touch_;  // last: it uses the region
};

}  // namespace penstock::shard::cpu
