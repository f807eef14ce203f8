#include "tools/simshard/sim_cache.h"

#include <algorithm>

namespace penstock::simshard {

SimCache::SimCache(std::uint32_t blocks, std::uint32_t block_size)
    : block_size_(block_size), cells_(std::size_t{blocks} * block_size, 0) {}

void SimCache::Write(std::span<const BlockId> table, std::uint32_t position,
                     std::uint64_t prefix_hash) {
  const std::size_t block = table[position / block_size_].value();
  cells_[block * block_size_ + position % block_size_] = prefix_hash;
}

void SimCache::Copy(BlockId src, BlockId dst) {
  const auto from = cells_.begin() + std::ptrdiff_t{src.value()} * block_size_;
  std::copy_n(from, block_size_, cells_.begin() + std::ptrdiff_t{dst.value()} * block_size_);
}

std::int64_t SimCache::FindWrong(std::span<const BlockId> table,
                                 std::span<const std::uint64_t> hashes, std::uint64_t first) const {
  std::size_t count = 0;
  for (; first < hashes.size(); first += count) {
    const std::size_t within = first % block_size_;
    count = std::min<std::size_t>(block_size_ - within, hashes.size() - first);
    const auto expected = hashes.begin() + static_cast<std::ptrdiff_t>(first);
    const auto cells = cells_.begin() +
                       std::ptrdiff_t{table[first / block_size_].value()} * block_size_ +
                       static_cast<std::ptrdiff_t>(within);
    const auto end = expected + static_cast<std::ptrdiff_t>(count);
    const auto [wrong, cell] = std::mismatch(expected, end, cells);
    if (wrong != end) return wrong - hashes.begin();
  }
  return -1;
}

}  // namespace penstock::simshard
