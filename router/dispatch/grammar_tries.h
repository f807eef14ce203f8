// The threads on which one grammar is tried out (grammar_trial.h), and the first verdict of them.
//
// A try beside the others runs at nice 5: a quarter of a processor that others want. One behind
// them gets what nobody else wants (common/thread_priority.h), which may be nothing for as long as
// the machine is busy: so there are at most kBehind of those at once, and whoever needs the verdict
// in time starts another try beside it. As soon as one knows, the other gives up.
//
// Thread-safe. Threads are left to end by themselves; what they use is theirs until then.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "router/dispatch/grammar_verdict.h"

namespace penstock::router {

class GrammarTries : public std::enable_shared_from_this<GrammarTries> {
 public:
  static constexpr int kBehind = 4;

  // Whether a try that has come so far is to go on.
  using GoesOn = std::function<bool()>;
  // Computes a verdict and does nothing else; null: it was not to go on.
  using Try = std::function<std::optional<GrammarVerdict>(const GoesOn&)>;
  // Once, on the thread of the try that was first.
  using Tell = std::function<void(std::optional<GrammarVerdict>)>;
  // How many tries run behind everybody, of all grammars.
  using Behind = std::shared_ptr<std::atomic<int>>;

  GrammarTries(Try attempt, GoesOn goes_on, Tell tell, Behind behind);

  void StartBeside();
  // False: too many are there already.
  bool StartBehind();
  // Whether one of them has taken all the processor time that a grammar may take.
  bool UsedUp() const;

 private:
  using Clock = std::atomic<clockid_t>;
  static constexpr clockid_t kNoClock = CLOCK_REALTIME;

  std::optional<GrammarVerdict> Run(Clock& clock) const;
  void End(std::optional<GrammarVerdict> verdict);

  const Try try_;
  const GoesOn goes_on_;
  const Tell tell_;
  const Behind behind_;
  Clock beside_clock_ = kNoClock;  // of the threads' processor time, while they run
  Clock behind_clock_ = kNoClock;
  std::atomic<bool> ended_ = false;
};

}  // namespace penstock::router
