#include "tests/bench/core/index_cost.h"

#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/kv/prefix_index.h"

namespace penstock::bench {
namespace {

using scheduler::PrefixIndex;

class Replay {
 public:
  Replay(std::uint32_t capacity, std::uint32_t block_size)
      : block_size_(block_size), index_(capacity, block_size) {
    for (std::uint32_t i = capacity; i > 0; --i) free_.push_back(BlockId(i - 1));
  }

  void Run(std::span<const TokenId> prompt) {
    const auto full = static_cast<std::uint32_t>(prompt.size() / block_size_);
    const auto match = index_.Lookup("", prompt, StepId(++step_));
    operations_ += full;
    lookups_ += full;
    hits_ += match.blocks;
    path_.clear();
    if (match.last) index_.AppendPath(*match.last, path_);
    for (const BlockId block : path_) index_.Lock(block);
    operations_ += path_.size();
    for (std::uint32_t i = match.blocks; i < full; ++i)
      Insert(prompt.subspan(i * block_size_, block_size_));
    for (auto it = path_.rbegin(); it != path_.rend(); ++it) index_.Unlock(*it);
    operations_ += path_.size();
  }

  std::uint64_t operations() const { return operations_; }
  double hit_rate() const { return static_cast<double>(hits_) / static_cast<double>(lookups_); }

 private:
  void Insert(std::span<const TokenId> tokens) {
    if (free_.empty()) {
      const std::optional<BlockId> block = index_.Evict();
      if (!block) return;  // all are locked by this prompt
      free_.push_back(*block);
      ++operations_;
    }
    const std::optional<BlockId> parent =
        path_.empty() ? std::nullopt : std::optional(path_.back());
    index_.Insert("", parent, tokens, free_.back(), StepId(step_));
    path_.push_back(free_.back());
    free_.pop_back();
    ++operations_;
  }

  const std::uint32_t block_size_;
  PrefixIndex index_;
  std::vector<BlockId> free_;
  std::vector<BlockId> path_;
  std::uint64_t step_ = 0;
  std::uint64_t operations_ = 0;
  std::uint64_t lookups_ = 0;
  std::uint64_t hits_ = 0;
};

}  // namespace

IndexCost MeasureIndex(const sim::Trace& trace, std::uint32_t capacity, std::uint32_t block_size) {
  Replay replay(capacity, block_size);
  std::chrono::steady_clock::duration time{0};
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const std::vector<TokenId> prompt = sim::MakePrompt(trace, i);
    const auto start = std::chrono::steady_clock::now();
    replay.Run(prompt);
    time += std::chrono::steady_clock::now() - start;
  }
  IndexCost cost;
  cost.operations = replay.operations();
  cost.nanoseconds_per_operation =
      std::chrono::duration<double, std::nano>(time).count() / static_cast<double>(cost.operations);
  cost.hit_rate = replay.hit_rate();
  return cost;
}

}  // namespace penstock::bench
