#include "shard/backend/cpu/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/status.h"
#include "shard/backend/cpu/work_split.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kPage = 4096;
// Kernels read whole vectors and stop mattering, not reading, at the end of the last block.
constexpr std::size_t kSlack = 4096;

}  // namespace

absl::Status KvCache::Allocate(const PagedLayout& layout, std::uint32_t blocks, std::uint32_t spare,
                               WorkerPool& pool) {
  region_ = MemoryRegion();  // freed first: the two need not fit together
  layout_ = layout;
  blocks_ = all_blocks_ = 0;
  if (blocks == 0) return absl::OkStatus();
  auto region = MemoryRegion::Allocate(layout.Bytes(blocks + spare) + kSlack);
  if (!region.ok()) return WithContext(region.status(), "KV cache");
  region_ = std::move(*region);
  blocks_ = blocks;
  all_blocks_ = blocks + spare;
  // The kernel zeroes a page when it is first touched, which must not happen in a step.
  const std::size_t pages = region_.bytes() / kPage;
  pool.Run([&](std::uint32_t thread) {
    const Share share = EvenShare(pages, pool.threads(), thread);
    for (std::size_t i = share.first; i < share.first + share.count; ++i) {
      *static_cast<volatile std::byte*>(region_.data() + i * kPage) = std::byte(0);
    }
  });
  return absl::OkStatus();
}

HeadCache KvCache::Head(std::size_t layer, std::size_t head) const {
  const std::size_t head_bytes =
      layout_.block_size * KvHeadBytes(layout_.kv_type, layout_.dtype, layout_.head_dim);
  HeadCache cache;
  cache.base = Block(layer, 0) + head * 2 * head_bytes;
  cache.block_bytes = BlockBytes();
  cache.value_offset = head_bytes;
  cache.block_size = layout_.block_size;
  cache.head_dim = layout_.head_dim;
  return cache;
}

HeadCache KvCache::Hidden() const {
  HeadCache cache;
  cache.base = Block(layout_.layers, 0);
  cache.block_bytes = HiddenBlockBytes();
  cache.block_size = layout_.block_size;
  cache.head_dim = layout_.hidden;
  return cache;
}

void KvCache::CopyBlock(std::uint32_t src, std::uint32_t dst) {
  for (std::size_t layer = 0; layer < layout_.layers; ++layer) {
    std::memmove(Block(layer, dst), Block(layer, src), BlockBytes());
  }
  std::byte* const hidden = Block(layout_.layers, 0);
  const std::size_t bytes = HiddenBlockBytes();
  std::memmove(hidden + dst * bytes, hidden + src * bytes, bytes);
}

}  // namespace penstock::shard::cpu
