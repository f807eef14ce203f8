#include "shard/backend/cpu/cache/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/status.h"
#include "shard/backend/cpu/cache/prefault.h"

namespace penstock::shard::cpu {
namespace {

// Kernels read whole vectors, so they may read beyond the end of the last block.
constexpr std::size_t kSlack = 4096;

}  // namespace

absl::Status KvCache::Allocate(const PagedLayout& layout, std::uint32_t blocks, std::uint32_t spare,
                               WorkerPool& pool, std::size_t prefaulted) {
  region_ = MemoryRegion();  // freed first: the two need not fit together
  layout_ = layout;
  blocks_ = all_blocks_ = 0;
  if (blocks == 0) return absl::OkStatus();
  auto region = MemoryRegion::Allocate(layout.Bytes(blocks + spare) + kSlack);
  if (!region.ok()) return WithContext(region.status(), "KV cache");
  region_ = std::move(*region);
  blocks_ = blocks;
  all_blocks_ = blocks + spare;
  Prefault(pool, prefaulted);
  return absl::OkStatus();
}

void KvCache::Prefault(WorkerPool& pool, std::size_t bytes) const {
  const std::size_t per_block = std::max<std::size_t>(1, region_.bytes() / all_blocks_);
  const std::size_t first = std::min<std::size_t>(blocks_, bytes / per_block + 1);
  // The threads pre-fault huge pages in turn. So the cache lies on all NUMA nodes, since any thread
  // may read any block.
  pool.Run([&](std::uint32_t thread) {
    std::size_t next = 0;
    const auto prefault = [&](std::byte* from, std::size_t size) {
      for (std::size_t unit = 0; unit < PrefaultUnits(size); ++unit) {
        if (next++ % pool.threads() == thread) PrefaultUnit({from, size}, unit);
      }
    };
    for (std::size_t plane = 0; plane < Planes(); ++plane) {
      prefault(Block(plane, 0), first * BlockBytes());
      prefault(Block(plane, blocks_), (all_blocks_ - blocks_) * BlockBytes());
    }
    prefault(HiddenPlane(), first * HiddenBlockBytes());
    std::byte* const spare = HiddenPlane() + blocks_ * HiddenBlockBytes();
    prefault(spare, static_cast<std::size_t>(region_.data() + region_.bytes() - spare));
  });
}

HeadCache KvCache::Head(std::size_t layer, std::size_t head) const {
  HeadCache cache;
  cache.base = Block(layer * layout_.kv_heads + head, 0);
  cache.block_bytes = BlockBytes();
  cache.value_offset = BlockBytes() / 2;
  cache.block_size = layout_.block_size;
  cache.head_dim = layout_.head_dim;
  return cache;
}

HeadCache KvCache::Hidden() const {
  HeadCache cache;
  cache.base = HiddenPlane();
  cache.block_bytes = HiddenBlockBytes();
  cache.block_size = layout_.block_size;
  cache.head_dim = layout_.hidden;
  return cache;
}

void KvCache::CopyBlock(std::uint32_t src, std::uint32_t dst) {
  for (std::size_t plane = 0; plane < Planes(); ++plane) {
    std::memmove(Block(plane, dst), Block(plane, src), BlockBytes());
  }
  std::byte* const hidden = HiddenPlane();
  const std::size_t bytes = HiddenBlockBytes();
  std::memmove(hidden + dst * bytes, hidden + src * bytes, bytes);
}

}  // namespace penstock::shard::cpu
