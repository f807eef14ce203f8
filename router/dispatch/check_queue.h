// The order in which checks of grammars begin: tenants take turns, one has at most so many seats,
// costly checks have as many of their own, and the queue is bounded (grammar_checker.h has the
// rules).
//
// Not thread-safe. A few dozen entries at most, so everything is a walk over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"
#include "router/engine.h"

namespace penstock::router {

class GrammarTries;
class GrammarWaiter;

// One grammar that is to be checked or is being checked.
struct GrammarCheck {
  struct Waiting {
    std::shared_ptr<GrammarWaiter> waiter;
    Time arrived;
  };

  Grammar grammar;
  std::string tenant;
  std::uint64_t turn = 0;
  std::vector<Waiting> waiting;
  bool costly = false;                  // it took more than usual checks do, and was put off
  std::shared_ptr<GrammarTries> tries;  // null: not begun
  Time began;                           // of its latest tries
  Duration usual_took{0};               // once it is costly
  std::optional<Time> patience;         // when to try it beside the others too
};

class CheckQueue {
 public:
  using Check = std::shared_ptr<GrammarCheck>;

  // `seats`: for usual checks, and as many for costly ones.
  CheckQueue(std::size_t limit, std::size_t seats, std::size_t seats_of_tenant)
      : limit_(limit), seats_(seats), seats_of_tenant_(seats_of_tenant) {}

  // The one with the same grammar that waits or runs; null: none.
  Check Find(const Grammar& grammar) const;

  // What finds no place, perhaps the new one; null: nothing.
  Check Add(Check check);

  // The next to begin, which then holds a seat until Release; null: none may.
  Check Take();
  void Release(Check check);
  // Behind its tenant's others, for a seat of the costly ones; returns what finds no place.
  Check PutOff(Check check);

  // Takes it off the queue before its turn.
  void Drop(Check check);

  const std::vector<Check>& queued() const { return queued_; }
  const std::vector<Check>& running() const { return running_; }

 private:
  bool MayRun(const GrammarCheck& check) const;

  const std::size_t limit_;
  const std::size_t seats_;
  const std::size_t seats_of_tenant_;
  std::uint64_t turn_ = 0;  // of the latest that began
  std::vector<Check> queued_;
  std::vector<Check> running_;
};

}  // namespace penstock::router
