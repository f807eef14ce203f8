// Says whether a grammar can be enforced, before a shard sees it (grammar_trial.h), without making
// anybody wait who did not ask: checks run on threads of lower priority, and a verdict that is
// known is given at once.
//
// Usual checks (at most GrammarTrial::kUsualCpu of processor time) run beside everybody else, at
// nice 5. One that takes more is put off: it begins anew among the costly ones, which run behind
// everybody else, where they cost nobody anything, and after kPatience, the usual try's time
// included, beside them too (the machine may leave nothing for those behind; grammar_tries.h).
// Seats: kSeats usual checks run at once and as many costly ones, at most kSeatsOfTenant of either
// for one tenant, so that costly grammars never hold up usual ones. A check that overruns is left
// to end by itself (nothing can stop it) and keeps its seat until then.
// Queue: of tenants in turn, at most kQueue checks. When it is full, the newest check of the tenant
// that has the most of them in it is told to come again, which may be the new one.
// Time: counted from the request's arrival. A check that has not begun after kQueueLimit is told to
// come again; one that has not ended after kAnswerLimit is refused as too slow if it has used up
// its processor time, and otherwise told to come again: the machine is busy, and its verdict is
// kept. Requests with the same grammar wait for one check. Verdicts are kept: the kEntries latest,
// with at most kCachedBytes of grammars.
//
// Thread-safe. Owns one thread, which answers; those that check are left alone when it ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/dispatch/grammar_verdict.h"
#include "router/engine.h"
#include "text/tokenizer.h"

namespace penstock::router {

// A request that waits for a verdict.
class GrammarWaiter {
 public:
  virtual ~GrammarWaiter() = default;
  // Any thread. False: nobody wants the verdict any more, and the check need not begin.
  virtual bool Waits() const = 0;
  // Once, on the checker's thread, unless the checker is stopped before.
  virtual void OnVerdict(GrammarVerdict verdict) = 0;
};

class GrammarChecker {
 public:
  static constexpr std::size_t kSeats = 3;
  static constexpr std::size_t kSeatsOfTenant = 2;
  static constexpr std::size_t kQueue = 64;
  static constexpr std::chrono::milliseconds kQueueLimit{1000};
  static constexpr std::chrono::milliseconds kAnswerLimit{2000};
  static constexpr std::chrono::milliseconds kPatience{400};
  static constexpr std::size_t kEntries = 1024;
  static constexpr std::size_t kCachedBytes = std::size_t{16} << 20;

  // Prepares the vocabulary on a thread of its own. `rows`: of the model's logits.
  GrammarChecker(std::shared_ptr<const text::Tokenizer> tokenizer, std::uint32_t rows,
                 std::vector<TokenId> eos_ids);
  ~GrammarChecker();  // Stop
  GrammarChecker(const GrammarChecker&) = delete;
  GrammarChecker& operator=(const GrammarChecker&) = delete;

  std::optional<GrammarVerdict> Known(const Grammar& grammar);
  void Check(Grammar grammar, const std::string& tenant, Time arrived,
             std::shared_ptr<GrammarWaiter> waiter);

  // Nobody who still waits hears anything.
  void Stop();

 private:
  struct State;
  class Answerer;
  const std::shared_ptr<State> state_;  // shared with checks that overrun
  std::unique_ptr<Answerer> answerer_;
};

}  // namespace penstock::router
