// The KV cache in the layout of HeadCache (kernels.h). Each K/V head of each cache has a plane: an
// array of blocks, each K followed by V. Neighbouring blocks of a sequence are neighbours in
// memory, so attention reads a prompt as one stream; memory serves that up to 1.6 times as fast as
// separate blocks. After the planes comes the hidden-state plane, if there is one: blocks that hold
// only keys.
//
// Every plane has `spare` blocks after those of the sequences: contrastive search keeps the K/V of
// its candidates there until it chooses one. A plane has the blocks of its KV group.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

class KvCache {
 public:
  // Zeroed; frees the former contents first. The last `row_blocks` of the blocks are for padded KV
  // rows. The spare blocks and the first ones of each kind (schedulers use those first) are
  // pre-faulted, about `prefaulted` bytes of each kind; the kernel supplies the rest when it is
  // first used. ResourceExhausted.
  absl::Status Allocate(const PagedLayout& layout, const KvBlocks& blocks, std::uint32_t spare,
                        WorkerPool& pool, std::size_t prefaulted = SIZE_MAX,
                        std::uint32_t row_blocks = 0);

  const KvBlocks& blocks() const { return blocks_; }  // spare ones excluded
  std::uint32_t kv_groups() const { return layout_.GroupCount(); }
  std::uint32_t GroupOf(std::size_t cache) const { return layout_.caches[cache].kv_group; }
  std::uint32_t block_size() const { return layout_.block_size; }
  std::uint64_t MemoryBytes() const { return region_.bytes(); }

  HeadCache Head(std::size_t cache, std::size_t head) const;
  bool has_hidden() const { return layout_.hidden > 0; }
  HeadCache Hidden() const;
  void CopyBlock(std::uint32_t kv_group, std::uint32_t src, std::uint32_t dst);

 private:
  void Prefault(WorkerPool& pool, std::size_t bytes, std::uint32_t row_blocks) const;
  // The blocks of one head, or of the hidden states.
  struct Plane {
    std::byte* base = nullptr;
    std::size_t block_bytes = 0;
    std::uint32_t kv_group = 0;
    std::byte* Block(std::size_t block) const { return base + block * block_bytes; }
  };
  void MakePlanes();
  const Plane& HiddenPlane() const { return planes_.back(); }

  PagedLayout layout_;
  KvBlocks blocks_;
  std::uint32_t spare_ = 0;               // blocks of each plane
  std::vector<Plane> planes_;             // cache by cache, then that of the hidden states
  std::vector<std::size_t> first_plane_;  // of each cache
  MemoryRegion region_;
};

}  // namespace penstock::shard::cpu
