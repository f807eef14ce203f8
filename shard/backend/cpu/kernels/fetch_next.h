// What attention will read next, asked for while it computes: three quarters of the blocks in step
// with the cells that are read now (AheadOf), the others, the last ones, while exponents are
// computed, so that the memory does not stand still meanwhile. Hints; they change no bit.
// Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

// The first block that is left to the exponents.
inline std::size_t FirstWithExponents(const AttentionTile& tile) {
  return tile.next.count - tile.next.count / 4;
}

// From the block that holds `position` of the partition at `origin` to the one in its place in what
// comes next; 0 where there is none, or another asks for it.
inline std::ptrdiff_t AheadOf(const AttentionTile& tile, std::size_t origin, std::size_t position,
                              const std::byte* block) {
  const std::size_t size = tile.cache.block_size;
  const std::size_t number = position / size - origin / size;
  if (number >= FirstWithExponents(tile)) return 0;
  return tile.next.base + tile.next.blocks[number] * tile.cache.block_bytes - block;
}

// The blocks of the exponents, asked for in `calls` calls of Ask.
class FetchWithExponents {
 public:
  FetchWithExponents(const AttentionTile& tile, std::size_t calls)
      : next_(tile.next),
        block_bytes_(tile.cache.block_bytes),
        bytes_(2 * tile.cache.value_offset),
        block_(FirstWithExponents(tile)) {
    const std::size_t lines = (next_.count - block_) * (bytes_ / kLine);
    lines_ = (lines + calls - 1) / calls;
    if (lines_ > kMostLines) lines_ = kMostLines;
    EnterBlock();
  }

  [[gnu::always_inline]] void Ask() {
    if (at_ == nullptr) return;
    for (std::size_t i = 0; i < lines_; ++i, at_ += kLine) _mm_prefetch(at_, _MM_HINT_T1);
    if (at_ < end_) return;
    ++block_;
    EnterBlock();
  }

 private:
  static constexpr std::size_t kLine = 64;
  // Of a call: more than the memory takes up at once would hold up what is computed.
  static constexpr std::size_t kMostLines = 4;

  void EnterBlock() {
    at_ = nullptr;
    if (block_ >= next_.count) return;
    at_ = reinterpret_cast<const char*>(next_.base + next_.blocks[block_] * block_bytes_);
    end_ = at_ + bytes_;
  }

  const AttentionTile::Next next_;
  const std::size_t block_bytes_;
  const std::size_t bytes_;  // of K and V of a head in a block
  std::size_t block_;
  std::size_t lines_ = 0;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
};

}  // namespace
}  // namespace penstock::shard::cpu
