#include "shard/backend/cpu/cache/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/status.h"

namespace penstock::shard::cpu {
namespace {

// Kernels read whole vectors and stop mattering, not reading, at the end of the last block.
constexpr std::size_t kSlack = 4096;

}  // namespace

absl::Status KvCache::Allocate(const PagedLayout& layout, std::uint32_t blocks, std::uint32_t spare,
                               WorkerPool& pool, std::size_t touched) {
  touch_.reset();
  region_ = MemoryRegion();  // freed first: the two need not fit together
  layout_ = layout;
  blocks_ = all_blocks_ = 0;
  if (blocks == 0) return absl::OkStatus();
  auto region = MemoryRegion::Allocate(layout.Bytes(blocks + spare) + kSlack);
  if (!region.ok()) return WithContext(region.status(), "KV cache");
  region_ = std::move(*region);
  blocks_ = blocks;
  all_blocks_ = blocks + spare;
  Touch(pool, touched);
  return absl::OkStatus();
}

void KvCache::AddUnits(std::size_t first, std::size_t end, std::vector<bool>& marked,
                       std::vector<std::uint32_t>& units) const {
  const auto add = [&](const std::byte* from, std::size_t bytes) {
    if (bytes == 0) return;
    const auto at = static_cast<std::size_t>(from - region_.data());
    for (std::size_t unit = at / kTouchUnit; unit * kTouchUnit < at + bytes; ++unit) {
      if (!marked[unit]) units.push_back(static_cast<std::uint32_t>(unit));
      marked[unit] = true;
    }
  };
  for (std::size_t plane = 0; plane < Planes(); ++plane) {
    add(Block(plane, first), (end - first) * BlockBytes());
  }
  add(HiddenPlane() + first * HiddenBlockBytes(), (end - first) * HiddenBlockBytes());
}

void KvCache::Touch(WorkerPool& pool, std::size_t touched) {
  const std::span<std::byte> memory(region_.data(), region_.bytes());
  std::vector<bool> marked(TouchUnits(memory.size()), false);
  std::vector<std::uint32_t> units;
  marked.back() = true;  // behind the last block, where kernels read
  units.push_back(static_cast<std::uint32_t>(marked.size() - 1));
  AddUnits(blocks_, all_blocks_, marked, units);
  std::size_t first_run = 0;  // units
  for (std::size_t first = 0; first < blocks_; first += BlocksOfUnit()) {
    AddUnits(first, std::min<std::size_t>(first + BlocksOfUnit(), blocks_), marked, units);
    if (first == 0) first_run = units.size();
  }
  units_ = units.size();
  const std::size_t now =
      std::max(first_run, std::min(units_, TouchUnits(std::min(touched, memory.size()))));
  // One after the other: on several NUMA nodes they lie on all of them, since any thread may read
  // any block.
  pool.Run([&](std::uint32_t thread) {
    for (std::size_t i = thread; i < now; i += pool.threads()) TouchUnit(memory, units[i]);
  });
  units.erase(units.begin(), units.begin() + static_cast<std::ptrdiff_t>(now));
  if (!units.empty()) touch_ = std::make_unique<FirstTouch>(memory, std::move(units));
}

void KvCache::StepBegins(std::uint32_t highest_block) {
  if (touch_ == nullptr) return;
  // Units come in the order of their blocks, and the first of them are behind it already.
  const std::size_t runs = highest_block / BlocksOfUnit() + 1;
  touch_->StepBegins(units_ * std::min<std::size_t>(runs * BlocksOfUnit(), blocks_) / blocks_);
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
