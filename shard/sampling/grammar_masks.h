// Where each running sequence stands in its grammar, and which tokens it may take next. A thread of
// its own moves a sequence on as soon as its token is known and computes the next mask while the
// model computes the next step, so a mask usually waits to be used. A grammar that the cache does
// not have is compiled by another thread, which steps aside for those that compute and holds up
// nobody else's masks.
//
//   Start(slot, …)                at the sequence's start, with what it has generated already
//   AnyReady(slots, until)        whether Get would give a mask at once
//   Get(slot)                     the mask for the next token
//   Advance(slot, token)          the token that was picked
//   End(slot)
//
// A grammar that fails (too much work for one mask), or whose mask is not there kLongestWait after
// it was asked for, fails its own sequence alone.
//
// Queues: at most one job per slot, since Get comes between two of them; a Start that replaces a
// sequence leaves one stale job at most behind for the masks, and none to be compiled. What nobody
// wants any more is not compiled.
//
// Threading: all calls from the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "common/time.h"
#include "shard/sampling/grammar_cache.h"
#include "shard/sampling/token_mask.h"

namespace penstock::shard {

class GrammarMasks {
 public:
  static constexpr std::chrono::seconds kLongestWait{30};

  // The cache outlives this.
  GrammarMasks(std::uint32_t slots, GrammarCache& cache);
  ~GrammarMasks();
  GrammarMasks(const GrammarMasks&) = delete;
  GrammarMasks& operator=(const GrammarMasks&) = delete;

  void Start(SlotId slot, const GrammarSpec& spec, std::span<const TokenId> generated);
  void Advance(SlotId slot, TokenId token);
  void End(SlotId slot);
  void EndAll();
  bool Holds(SlotId slot) const { return cells_[slot.value()] != nullptr; }

  // Waits, until `until` at most, for the mask or the failure of one of them.
  bool AnyReady(std::span<const SlotId> slots, Time until);

  struct Row {
    std::span<std::uint32_t> allowed;  // a TokenMask; valid, and the caller's, until Advance
    bool only_end = false;             // nothing but the end may follow
  };
  // Waits if it is not ready.
  absl::StatusOr<Row> Get(SlotId slot);

 private:
  // One sequence. While `busy` it is a worker's, else the model thread's.
  struct Cell {
    GrammarSpec spec;
    bool busy = true;    // under mutex_
    bool wanted = true;  // under mutex_
    Time due{};          // the model thread's: when it has waited too long
    absl::Status status;
    std::shared_ptr<const text::CompiledGrammar> grammar;  // until its matcher is there
    std::unique_ptr<text::GrammarMatcher> matcher;
    std::vector<std::uint32_t> mask;
    bool only_end = false;
  };
  struct Job {
    std::shared_ptr<Cell> cell;
    std::vector<TokenId> tokens;
  };
  struct Queue {
    std::deque<Job> jobs;  // under mutex_
    std::condition_variable news;
  };

  void Ask(SlotId slot, std::vector<TokenId> tokens);
  void Push(Queue& queue, Job job);
  // The next job that is wanted. False: it is over.
  bool Take(Queue& queue, Job& job);
  void Finish(Cell& cell, absl::Status status);
  void Work();
  void Compile();
  bool Compiled(Cell& cell);
  absl::Status Move(Cell& cell, std::span<const TokenId> tokens);

  GrammarCache& cache_;
  std::vector<std::shared_ptr<Cell>> cells_;  // by slot; null: no grammar

  std::mutex mutex_;
  std::condition_variable done_;
  Queue masks_;
  Queue compiles_;
  bool stopping_ = false;
  std::thread worker_;  // last, both: they use the above
  std::thread compiler_;
};

}  // namespace penstock::shard
