// The KV cache in the layout of HeadCache (kernels.h). Each K/V head of each layer has a plane: an
// array of blocks, each K followed by V. Neighbouring blocks of a sequence are neighbours in
// memory, so attention reads a prompt as one stream; memory serves that up to 1.6 times as fast as
// separate blocks. After the planes comes the hidden-state plane, if there is one: blocks that hold
// only keys.
//
// Every plane has `spare` blocks after those of the sequences: contrastive search keeps the K/V of
// its candidates there until it chooses one.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

class KvCache {
 public:
  // Zeroed; frees the former contents first. The spare blocks, the first ones (schedulers use
  // those first) and about `prefaulted` bytes in all are pre-faulted; the kernel supplies the rest
  // when it is first used. ResourceExhausted.
  absl::Status Allocate(const PagedLayout& layout, std::uint32_t blocks, std::uint32_t spare,
                        WorkerPool& pool, std::size_t prefaulted = SIZE_MAX);

  std::uint32_t blocks() const { return blocks_; }
  std::uint32_t block_size() const { return layout_.block_size; }
  std::uint64_t MemoryBytes() const { return region_.bytes(); }

  HeadCache Head(std::size_t layer, std::size_t head) const;
  bool has_hidden() const { return layout_.hidden > 0; }
  HeadCache Hidden() const;
  void CopyBlock(std::uint32_t src, std::uint32_t dst);

 private:
  void Prefault(WorkerPool& pool, std::size_t bytes) const;
  std::size_t Planes() const { return std::size_t{layout_.layers} * layout_.kv_heads; }
  // Of a plane.
  std::size_t BlockBytes() const {
    return 2 * layout_.block_size * KvHeadBytes(layout_.kv_type, layout_.dtype, layout_.head_dim);
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
};

}  // namespace penstock::shard::cpu
