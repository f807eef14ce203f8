// Prefetches the K/V that attention reads next, in memory order and spread evenly over the present
// computation, so that the memory is always busy. Prefetches change no bit. Internal to the
// including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kFetchLine = 64;

// Attention computes scores, then exponentials, then values. These fractions of the lines are
// prefetched by the end of the first and of the second stage. They match the time that each stage
// takes; prefetching at the beginning of each stage is a tenth slower.
constexpr double kRequestedWithScores = 3.0 / 8;
constexpr double kRequestedWithExponents = 5.0 / 8;

class Prefetcher {
 public:
  explicit Prefetcher(const AttentionTile& tile)
      : block_bytes_(tile.cache.block_bytes),
        run_(tile.prefetch.data()),
        runs_(tile.prefetch.size()) {
    for (const BlockRun& run : tile.prefetch) lines_ += run.count * block_bytes_ / kFetchLine;
  }

  // Prefetches up to this part of all lines, spread over the next `calls` calls of Take or Touch.
  // There may be none, as for the values of candidates that begin a partition.
  void Spread(double part, std::size_t calls) {
    const auto wanted = static_cast<std::size_t>(part * static_cast<double>(lines_));
    due_ = requested_;
    each_ = wanted > requested_ && calls > 0 ? (wanted - requested_ + calls - 1) / calls : 0;
  }

  // The address of the next `lines` lines, which the caller prefetches. Returns `other`, whose
  // lines are in the cache already, when none are due.
  [[gnu::always_inline]] const char* Take(std::size_t lines, const void* other) {
    due_ += each_;
    if (requested_ >= due_ || requested_ >= lines_) return static_cast<const char*>(other);
    return Next(lines);
  }

  // Prefetches the lines that are due, at most kMostLines.
  [[gnu::always_inline]] void Touch() {
    if (each_ == 0 || requested_ >= lines_) return;
    const std::size_t lines = each_ < kMostLines ? each_ : kMostLines;
    const char* from = Next(lines);
    for (std::size_t i = 0; i < lines; ++i) _mm_prefetch(from + i * kFetchLine, _MM_HINT_T1);
  }

 private:
  static constexpr std::size_t kMostLines = 4;

  [[gnu::always_inline]] const char* Next(std::size_t lines) {
    if (at_ >= end_ && runs_ > 0) {
      at_ = reinterpret_cast<const char*>(run_->base + run_->blocks[block_] * block_bytes_);
      end_ = at_ + block_bytes_;
      if (++block_ == run_->count) {
        ++run_;
        --runs_;
        block_ = 0;
      }
    }
    const char* from = at_;
    at_ += lines * kFetchLine;
    requested_ += lines;
    return from;
  }

  const std::size_t block_bytes_;
  const BlockRun* run_;
  std::size_t runs_;  // from *run_ on
  std::size_t lines_ = 0;
  std::size_t requested_ = 0;
  std::size_t due_ = 0;
  std::size_t each_ = 0;
  std::size_t block_ = 0;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
};

}  // namespace
}  // namespace penstock::shard::cpu
