// The grammar masks of the running sequences: which tokens each may take next, and which it must
// take where its grammar leaves one text. One thread computes the next mask as soon as a token is
// known, while the model computes the next step. So a mask is usually ready before it is needed.
// Another thread compiles grammars that the cache does not have; it does not delay the masks of
// other sequences.
//
// The calls for one slot are Start, then Get and Advance in turn, then End.
//
// A sequence fails if its grammar fails, for example because one mask takes too much work. It also
// fails if its mask is not ready kLongestWait after it was requested.
//
// Queues: at most one job for each slot, because Get comes between two jobs. A Start that replaces
// a sequence may leave one stale job in the queue of masks. Grammars of ended sequences are not
// compiled.
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

// Whether and how a grammar forces tokens, and what they follow.
struct ForcingRule {
  bool forces = false;              // one text becomes the tokenizer's own tokens
  std::span<const TokenId> prompt;  // before the output
  std::span<const TokenId> never;   // tokens that are not forced, because they mean more
};

class GrammarMasks {
 public:
  static constexpr std::chrono::seconds kLongestWait{30};

  // The cache outlives this.
  GrammarMasks(std::uint32_t slots, GrammarCache& cache);
  ~GrammarMasks();
  GrammarMasks(const GrammarMasks&) = delete;
  GrammarMasks& operator=(const GrammarMasks&) = delete;

  // `generated` is the output so far, of a restarted sequence.
  void Start(SlotId slot, const GrammarSpec& spec, std::span<const TokenId> generated,
             const ForcingRule& rule = {});
  void Advance(SlotId slot, std::span<const TokenId> tokens);
  void Advance(SlotId slot, TokenId token) { Advance(slot, {&token, 1}); }
  void End(SlotId slot);
  bool Holds(SlotId slot) const { return cells_[slot.value()] != nullptr; }

  // Waits, at most until `until`, for the mask or the failure of any of these slots.
  bool AnyReady(std::span<const SlotId> slots, Time until);

  struct Row {
    std::span<std::uint32_t> allowed;  // a TokenMask; the caller may change it until Advance
    bool only_end = false;             // only the end of the output may follow
    std::span<const TokenId> forced;   // tokens that must follow; `allowed` has only the first
  };
  // The mask for the next token. Waits if it is not ready.
  absl::StatusOr<Row> Get(SlotId slot);
  // The tokens that must follow. Empty as well if the mask is not ready. Valid until Advance.
  std::span<const TokenId> Forced(SlotId slot);

 private:
  // One sequence. A worker owns it while `busy`, otherwise the model thread.
  struct Cell {
    GrammarSpec spec;
    bool busy = true;    // under mutex_
    bool wanted = true;  // under mutex_
    Time due{};          // when the sequence fails; of the model thread
    absl::Status status;
    std::shared_ptr<const text::CompiledGrammar> grammar;  // until the matcher exists
    std::unique_ptr<text::GrammarMatcher> matcher;
    std::vector<std::uint32_t> mask;
    bool only_end = false;
    bool forces = false;
    std::vector<TokenId> never;
    std::vector<TokenId> context;  // the last tokens, as GrammarMatcher::Forced needs them
    std::vector<TokenId> forced;
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
  // Takes the next job that is still wanted. False: the thread must end.
  bool Take(Queue& queue, Job& job);
  void Finish(Cell& cell, absl::Status status);
  void Work();
  void Compile();
  bool Compiled(Cell& cell);
  absl::Status Move(Cell& cell, std::span<const TokenId> tokens);
  absl::Status FindForced(Cell& cell);

  GrammarCache& cache_;
  std::vector<std::shared_ptr<Cell>> cells_;  // by slot; null: no grammar

  std::mutex mutex_;
  std::condition_variable done_;
  Queue masks_;
  Queue compiles_;
  bool stopping_ = false;
  std::thread worker_;  // both last, because they use the members above
  std::thread compiler_;
};

}  // namespace penstock::shard
