// Where each running sequence stands in its grammar, and which tokens it may take next. A thread of
// its own moves a sequence on as soon as its token is known and computes the next mask while the
// model computes the next step, so a mask usually waits to be used.
//
//   Start(slot, …)                at the sequence's start, with what it has generated already
//   Wait(slot)                    the mask for the next token
//   Advance(slot, token)          the token that was picked
//   End(slot)
//
// A grammar that fails (too much work for one mask) fails its own sequence alone.
//
// Queue: at most one job per slot, since Wait comes between two of them; a Start that replaces a
// sequence leaves one stale job behind at most.
//
// Threading: all calls from the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "shard/sampling/grammar_cache.h"
#include "shard/sampling/token_mask.h"

namespace penstock::shard {

class GrammarMasks {
 public:
  // The cache outlives this.
  GrammarMasks(std::uint32_t slots, GrammarCache& cache);
  ~GrammarMasks();
  GrammarMasks(const GrammarMasks&) = delete;
  GrammarMasks& operator=(const GrammarMasks&) = delete;

  void Start(SlotId slot, const GrammarSpec& spec, std::span<const TokenId> generated);
  void Advance(SlotId slot, TokenId token);
  void End(SlotId slot) { cells_[slot.value()].reset(); }
  void EndAll();
  bool Holds(SlotId slot) const { return cells_[slot.value()] != nullptr; }

  struct Row {
    std::span<std::uint32_t> allowed;  // a TokenMask; valid, and the caller's, until Advance
    bool only_end = false;             // nothing but the end may follow
  };
  absl::StatusOr<Row> Wait(SlotId slot);

 private:
  // One sequence. While `busy` it is the worker's, else the model thread's.
  struct Cell {
    GrammarSpec spec;
    bool busy = true;  // under mutex_
    absl::Status status;
    std::unique_ptr<text::GrammarMatcher> matcher;  // null until the first job
    std::vector<std::uint32_t> mask;
    bool only_end = false;
  };
  struct Job {
    std::shared_ptr<Cell> cell;
    std::vector<TokenId> tokens;
  };

  void Push(Job job);
  void Work();
  absl::Status Move(Cell& cell, std::span<const TokenId> tokens);

  GrammarCache& cache_;
  std::vector<std::shared_ptr<Cell>> cells_;  // by slot; null: no grammar

  std::mutex mutex_;
  std::condition_variable news_;
  std::condition_variable done_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace penstock::shard
