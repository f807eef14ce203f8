#include "router/dispatch/grammar_tries.h"

#include <pthread.h>

#include <thread>
#include <utility>

#include "common/thread_priority.h"
#include "router/dispatch/grammar_trial.h"

namespace penstock::router {

GrammarTries::GrammarTries(Try attempt, GoesOn goes_on, Tell tell, Behind behind)
    : try_(std::move(attempt)),
      goes_on_(std::move(goes_on)),
      tell_(std::move(tell)),
      behind_(std::move(behind)) {}

void GrammarTries::StartBeside() {
  std::thread([self = shared_from_this()] {
    StepAside();
    self->End(self->Run(self->beside_clock_));
  }).detach();
}

// A thread of usual priority waits for the one behind and tells: nobody waits for a lock that a
// thread holds which stands still. A try takes memory, but the router's heap has one per thread.
bool GrammarTries::StartBehind() {
  if (behind_->fetch_add(1) >= kBehind) {
    behind_->fetch_sub(1);
    return false;
  }
  std::thread([self = shared_from_this()] {
    std::optional<GrammarVerdict> verdict;
    RunBehind([&] { verdict = self->Run(self->behind_clock_); });
    self->behind_->fetch_sub(1);
    self->End(std::move(verdict));
  }).detach();
  return true;
}

std::optional<GrammarVerdict> GrammarTries::Run(Clock& clock) const {
  clockid_t own{};
  if (::pthread_getcpuclockid(::pthread_self(), &own) == 0) clock = own;
  auto verdict = try_([this] { return !ended_ && goes_on_(); });
  clock = kNoClock;
  return verdict;
}

void GrammarTries::End(std::optional<GrammarVerdict> verdict) {
  if (!ended_.exchange(true)) tell_(std::move(verdict));
}

bool GrammarTries::UsedUp() const {
  for (const Clock* each : {&beside_clock_, &behind_clock_}) {
    const clockid_t clock = *each;
    if (clock != kNoClock && GrammarTrial::IsUsedUp(clock)) return true;
  }
  return false;
}

}  // namespace penstock::router
