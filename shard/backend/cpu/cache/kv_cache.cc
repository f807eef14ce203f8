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

absl::Status KvCache::Allocate(const PagedLayout& layout, const KvBlocks& blocks,
                               std::uint32_t spare, WorkerPool& pool, std::size_t prefaulted,
                               std::uint32_t row_blocks) {
  region_ = MemoryRegion();  // freed first: the two need not fit together
  layout_ = layout;
  blocks_ = KvBlocks();
  planes_.clear();
  first_plane_.clear();
  if (blocks.empty()) return absl::OkStatus();
  auto region =
      MemoryRegion::Allocate(layout.Bytes(blocks) + spare * layout.BytesPerBlock() + kSlack);
  if (!region.ok()) return WithContext(region.status(), "KV cache");
  region_ = std::move(*region);
  blocks_ = blocks;
  spare_ = spare;
  MakePlanes();
  Prefault(pool, prefaulted, row_blocks);
  return absl::OkStatus();
}

void KvCache::MakePlanes() {
  std::byte* next = region_.data();
  const auto add = [&](std::uint64_t bytes_per_token, std::uint32_t group) {
    planes_.push_back({next, bytes_per_token * layout_.block_size, group});
    next += (std::size_t{blocks_[group]} + spare_) * planes_.back().block_bytes;
  };
  for (const CacheShape& cache : layout_.caches) {
    first_plane_.push_back(planes_.size());
    for (std::uint32_t head = 0; head < cache.kv_heads; ++head) {
      add(layout_.KeyBytes(cache) + layout_.ValueBytes(cache), cache.kv_group);
    }
  }
  add(layout_.HiddenBytesPerToken(), 0);
}

void KvCache::Prefault(WorkerPool& pool, std::size_t bytes, std::uint32_t row_blocks) const {
  const std::size_t most = bytes / std::max<std::size_t>(1, layout_.BytesPerBlock()) + 1;
  const std::size_t first_of_rows = std::min<std::size_t>(row_blocks, most);
  // The threads pre-fault huge pages in turn. So the cache lies on all NUMA nodes, since any thread
  // may read any block.
  pool.Run([&](std::uint32_t thread) {
    std::size_t next = 0;
    const auto prefault = [&](std::byte* from, std::size_t size) {
      for (std::size_t unit = 0; unit < PrefaultUnits(size); ++unit) {
        if (next++ % pool.threads() == thread) PrefaultUnit({from, size}, unit);
      }
    };
    for (const Plane& plane : planes_) {
      const std::size_t for_rows = blocks_[plane.kv_group] - row_blocks;
      prefault(plane.base, std::min(for_rows, most) * plane.block_bytes);
      prefault(plane.Block(for_rows), first_of_rows * plane.block_bytes);
      if (&plane == &HiddenPlane()) break;
      prefault(plane.Block(blocks_[plane.kv_group]), spare_ * plane.block_bytes);
    }
    std::byte* const spare = HiddenPlane().Block(blocks_[0]);
    prefault(spare, static_cast<std::size_t>(region_.data() + region_.bytes() - spare));
  });
}

HeadCache KvCache::Head(std::size_t cache, std::size_t head) const {
  const CacheShape& shape = layout_.caches[cache];
  // A cache of latents has one head for all query heads.
  const Plane& plane = planes_[first_plane_[cache] + (shape.values_in_keys ? 0 : head)];
  HeadCache result;
  result.base = plane.base;
  result.block_bytes = plane.block_bytes;
  result.value_offset = layout_.KeyBytes(shape) * layout_.block_size;
  result.block_size = layout_.block_size;
  result.key_dim = shape.key_dim;
  result.value_dim = shape.value_dim;
  return result;
}

HeadCache KvCache::Hidden() const {
  HeadCache cache;
  cache.base = HiddenPlane().base;
  cache.block_bytes = HiddenPlane().block_bytes;
  cache.block_size = layout_.block_size;
  cache.key_dim = layout_.hidden;
  return cache;
}

void KvCache::CopyBlock(std::uint32_t kv_group, std::uint32_t src, std::uint32_t dst) {
  for (const Plane& plane : planes_) {
    if (plane.kv_group != kv_group) continue;
    std::memmove(plane.Block(dst), plane.Block(src), plane.block_bytes);
  }
}

}  // namespace penstock::shard::cpu
