// What attention will read next, asked for while it computes, in the order in which it lies in
// memory and as evenly as it computes, so that the memory stands still at no time. Hints; they
// change no bit. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kFetchLine = 64;

// Which part of the lines is asked for until the scores are there, and until the exponents are:
// about as long as these take. (The same, but each as soon as it begins: a tenth slower.)
constexpr double kFetchedWithScores = 3.0 / 8;
constexpr double kFetchedWithExponents = 5.0 / 8;

class FetchNext {
 public:
  explicit FetchNext(const AttentionTile& tile)
      : block_bytes_(tile.cache.block_bytes), run_(tile.ahead.data()), runs_(tile.ahead.size()) {
    for (const CellRun& run : tile.ahead) lines_ += run.count * block_bytes_ / kFetchLine;
  }

  // Up to this part of all lines, spread over the next `calls` calls of Take or Ask; there may be
  // none, as for the values of candidates that begin a partition.
  void Spread(double part, std::size_t calls) {
    const auto wanted = static_cast<std::size_t>(part * static_cast<double>(lines_));
    due_ = asked_;
    each_ = wanted > asked_ && calls > 0 ? (wanted - asked_ + calls - 1) / calls : 0;
  }

  // Where the next `lines` lines are, all of which the caller asks for; `other`, which is at hand,
  // when none are due.
  [[gnu::always_inline]] const char* Take(std::size_t lines, const void* other) {
    due_ += each_;
    if (asked_ >= due_ || asked_ >= lines_) return static_cast<const char*>(other);
    return Next(lines);
  }

  // Asks for the lines that are due, but for no more than the memory takes up at once.
  [[gnu::always_inline]] void Ask() {
    if (each_ == 0 || asked_ >= lines_) return;
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
    asked_ += lines;
    return from;
  }

  const std::size_t block_bytes_;
  const CellRun* run_;
  std::size_t runs_;  // from that on
  std::size_t lines_ = 0;
  std::size_t asked_ = 0;
  std::size_t due_ = 0;
  std::size_t each_ = 0;
  std::size_t block_ = 0;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
};

}  // namespace
}  // namespace penstock::shard::cpu
