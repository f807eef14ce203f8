// Checks whether a grammar can be enforced, before a shard sees it (grammar_trial.h).
//
// Checks run on kThreads threads at background priority, in order of arrival. Each may use
// CpuLimit::kLimit of processor time. At most kQueue checks wait, none longer than
// kQueueLimit; a request beyond that is refused as busy. Requests with the same grammar share one
// check. The cache keeps the verdicts on the latest kEntries grammars, at most kCachedBytes.
//
// Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/dispatch/verdict_cache.h"
#include "router/engine.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace penstock::router {

// A request that waits for a verdict.
class GrammarWaiter {
 public:
  virtual ~GrammarWaiter() = default;
  // Any thread. False: the client has gone, and the check need not begin.
  virtual bool Waits() const = 0;
  // Called once, on a thread of the checker, unless the checker stops first. Must not block.
  virtual void OnVerdict(GrammarVerdict verdict) = 0;
};

class GrammarChecker {
 public:
  static constexpr std::size_t kThreads = 2;
  static constexpr std::size_t kQueue = 64;
  static constexpr std::chrono::milliseconds kQueueLimit{1000};
  static constexpr std::size_t kEntries = 1024;
  static constexpr std::size_t kCachedBytes = std::size_t{16} << 20;

  // Prepares the vocabulary on a thread of its own. `rows`: of the model's logits.
  GrammarChecker(std::shared_ptr<const text::Tokenizer> tokenizer, std::uint32_t rows,
                 std::vector<TokenId> eos_ids);
  ~GrammarChecker();  // Stop
  GrammarChecker(const GrammarChecker&) = delete;
  GrammarChecker& operator=(const GrammarChecker&) = delete;

  // The cached verdict, if there is one.
  std::optional<GrammarVerdict> Known(const Grammar& grammar);
  // `arrived`: when the request came, from which kQueueLimit counts.
  void Check(Grammar grammar, Time arrived, std::shared_ptr<GrammarWaiter> waiter);

  // Waits for the checks that run. No waiter is called after it has returned.
  void Stop();

 private:
  using Vocabulary = absl::StatusOr<std::shared_ptr<const text::Vocabulary>>;

  struct Waiting {
    std::shared_ptr<GrammarWaiter> waiter;
    Time arrived;
  };
  // One grammar, queued or running.
  struct Job {
    Grammar grammar;
    std::vector<Waiting> waiting;
  };

  static bool IsWanted(const Job& job, Time now);  // with mutex_ held
  Job* Find(const Grammar& grammar);               // with mutex_ held
  GrammarVerdict Judge(const Grammar& grammar) const;
  void Run();

  const std::vector<TokenId> eos_ids_;
  const std::shared_future<Vocabulary> vocabulary_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<std::shared_ptr<Job>> queue_;
  std::vector<std::shared_ptr<Job>> running_;
  VerdictCache verdicts_{kEntries, kCachedBytes};

  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace penstock::router
