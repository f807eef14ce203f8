#include "router/dispatch/grammar_checker.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "common/status.h"
#include "router/dispatch/check_queue.h"
#include "router/dispatch/grammar_trial.h"
#include "router/dispatch/grammar_tries.h"
#include "router/dispatch/verdict_cache.h"
#include "text/grammar.h"

namespace penstock::router {
namespace {

using Vocabulary = absl::StatusOr<std::shared_ptr<const text::Vocabulary>>;

GrammarRefusal Busy() { return {true, "too many grammars are being checked"}; }

GrammarRefusal NotValid(const absl::Status& status) {
  return {false, "grammar is not valid: " + Message(status)};
}

std::size_t SizeOf(const GrammarVerdict& verdict) {
  const auto* spec = std::get_if<GrammarSpec>(&verdict);
  return spec == nullptr ? std::get<GrammarRefusal>(verdict).message.size() : spec->source.size();
}

struct Answer {
  std::shared_ptr<GrammarWaiter> waiter;
  GrammarVerdict verdict;
};

}  // namespace

struct GrammarChecker::State {
  std::vector<TokenId> eos_ids;
  std::shared_future<Vocabulary> vocabulary;

  std::mutex mutex;
  std::condition_variable changed;  // for the answerer: a check came, ended, or it is over
  bool stopping = false;
  CheckQueue queue{kQueue, kSeats, kSeatsOfTenant};
  VerdictCache<GrammarVerdict> verdicts{kEntries, kCachedBytes};
  std::vector<Answer> answers;  // to be given
  const GrammarTries::Behind behind = std::make_shared<std::atomic<int>>(0);

  // With the lock, as all that follow.
  void AnswerAll(GrammarCheck& check, const GrammarVerdict& verdict) {
    for (GrammarCheck::Waiting& each : check.waiting) {
      answers.push_back({std::move(each.waiter), verdict});
    }
    check.waiting.clear();
  }

  // Those for whom it is too late, or who do not wait any more.
  void AnswerLate(GrammarCheck& check, Time now, Duration limit, const GrammarVerdict& verdict) {
    std::erase_if(check.waiting, [&](const GrammarCheck::Waiting& each) {
      if (each.arrived + limit > now && each.waiter->Waits()) return false;
      answers.push_back({each.waiter, verdict});
      return true;
    });
  }

  void AnswerLate(Time now) {
    const std::vector<CheckQueue::Check> queued = queue.queued();
    for (const CheckQueue::Check& check : queued) {
      AnswerLate(*check, now, LimitOf(*check), Busy());
      if (check->waiting.empty()) queue.Drop(check);
    }
    for (const CheckQueue::Check& check : queue.running()) {
      const bool slow = check->tries->UsedUp();
      AnswerLate(*check, now, kAnswerLimit, slow ? NotValid(GrammarTrial::TooSlow()) : Busy());
    }
  }

  // Costly ones have begun once.
  static Duration LimitOf(const GrammarCheck& queued) {
    return queued.costly ? kAnswerLimit : kQueueLimit;
  }

  // Those that got too little behind the others.
  void TryBeside(Time now) {
    for (const CheckQueue::Check& check : queue.running()) {
      if (!check->patience || *check->patience > now) continue;
      check->patience.reset();
      check->tries->StartBeside();
    }
  }

  // When to look again.
  Time NextTime() const {
    Time next = Time::max();
    for (const CheckQueue::Check& check : queue.queued()) {
      for (const auto& each : check->waiting) next = std::min(next, each.arrived + LimitOf(*check));
    }
    for (const CheckQueue::Check& check : queue.running()) {
      for (const auto& each : check->waiting) next = std::min(next, each.arrived + kAnswerLimit);
      if (check->patience) next = std::min(next, *check->patience);
    }
    return next;
  }

  // Without the lock, on a thread that does nothing else.
  std::optional<GrammarVerdict> Try(const Grammar& grammar,
                                    const GrammarTries::GoesOn& goes_on) const {
    Grammar::Written written = grammar.write();
    if (auto* wrong = std::get_if<std::string>(&written)) {
      return GrammarRefusal{false, std::move(*wrong)};
    }
    auto spec = std::get<GrammarSpec>(std::move(written));
    if (spec.source.empty()) return spec;  // asks for nothing, as in TGI
    const Vocabulary& words = vocabulary.get();
    const absl::Status status =
        words.ok() ? GrammarTrial::Run(**words, eos_ids, spec, goes_on) : words.status();
    if (absl::IsCancelled(status)) return std::nullopt;
    if (!status.ok()) return NotValid(status);
    return spec;
  }

  void Finish(const CheckQueue::Check& check, GrammarVerdict verdict) {
    queue.Release(check);
    check->tries.reset();  // they hold on to it
    AnswerAll(*check, verdict);
    const std::size_t size = SizeOf(verdict);
    if (!check->grammar.source.empty()) {
      verdicts.Keep(std::move(check->grammar.source), std::move(verdict), size);
    }
  }

  // A usual check took more than those do.
  void PutOff(const CheckQueue::Check& check) {
    check->tries.reset();
    check->usual_took = SteadyNow() - check->began;
    if (const auto surplus = queue.PutOff(check)) AnswerAll(*surplus, Busy());
  }
};

// The thread that begins checks, keeps the time and gives the answers.
class GrammarChecker::Answerer {
 public:
  explicit Answerer(std::shared_ptr<State> state)
      : state_(std::move(state)), thread_([this] { Run(); }) {}

  ~Answerer() {
    {
      const std::lock_guard lock(state_->mutex);
      state_->stopping = true;
    }
    state_->changed.notify_all();
    thread_.join();
  }

 private:
  void Run() {
    std::unique_lock lock(state_->mutex);
    while (!state_->stopping) {
      state_->AnswerLate(SteadyNow());
      state_->TryBeside(SteadyNow());
      while (const CheckQueue::Check check = state_->queue.Take()) Begin(check);
      std::vector<Answer> answers = std::exchange(state_->answers, {});
      if (answers.empty()) {
        Wait(lock);
        continue;
      }
      lock.unlock();
      for (Answer& answer : answers) answer.waiter->OnVerdict(std::move(answer.verdict));
      answers.clear();
      lock.lock();
    }
  }

  void Wait(std::unique_lock<std::mutex>& lock) {
    const Time until = state_->NextTime();
    if (until == Time::max()) {
      state_->changed.wait(lock);
    } else {
      state_->changed.wait_until(lock, OnSteadyClock(until));
    }
  }

  void Begin(const CheckQueue::Check& check) {
    auto attempt = [state = state_, check](const GrammarTries::GoesOn& goes_on) {
      return state->Try(check->grammar, goes_on);
    };
    auto tell = [state = state_, check](std::optional<GrammarVerdict> verdict) {
      const std::lock_guard lock(state->mutex);
      if (verdict) {
        state->Finish(check, *std::move(verdict));
      } else {
        state->PutOff(check);
      }
      state->changed.notify_all();
    };
    const bool costly = check->costly;
    check->began = SteadyNow();
    check->tries = std::make_shared<GrammarTries>(
        std::move(attempt), [costly] { return costly || !GrammarTrial::IsCostly(); },
        std::move(tell), state_->behind);
    if (!costly) return check->tries->StartBeside();
    // Where the machine is so busy that the usual try took long, no patience is left.
    check->patience = check->began + std::max(Duration(0), kPatience - check->usual_took);
    check->tries->StartBehind();
  }

  const std::shared_ptr<State> state_;
  std::thread thread_;  // last: it uses the above
};

GrammarChecker::GrammarChecker(std::shared_ptr<const text::Tokenizer> tokenizer, std::uint32_t rows,
                               std::vector<TokenId> eos_ids)
    : state_(std::make_shared<State>()) {
  state_->eos_ids = eos_ids;
  state_->vocabulary = std::async(std::launch::async, [tokenizer = std::move(tokenizer), rows,
                                                       eos_ids = std::move(eos_ids)] {
    return text::Vocabulary::Create(*tokenizer, rows, eos_ids, text::Vocabulary::Tables::kPlain);
  });
  answerer_ = std::make_unique<Answerer>(state_);
}

GrammarChecker::~GrammarChecker() { Stop(); }

std::optional<GrammarVerdict> GrammarChecker::Known(const Grammar& grammar) {
  if (grammar.source.empty()) return std::nullopt;
  const std::lock_guard lock(state_->mutex);
  return state_->verdicts.Find(grammar.source);
}

void GrammarChecker::Check(Grammar grammar, const std::string& tenant, Time arrived,
                           std::shared_ptr<GrammarWaiter> waiter) {
  const std::lock_guard lock(state_->mutex);
  if (state_->stopping) return;
  if (const CheckQueue::Check same = state_->queue.Find(grammar)) {
    same->waiting.push_back({std::move(waiter), arrived});
  } else {
    auto check = std::make_shared<GrammarCheck>();
    check->grammar = std::move(grammar);
    check->tenant = tenant;
    check->waiting.push_back({std::move(waiter), arrived});
    if (const auto surplus = state_->queue.Add(std::move(check))) {
      state_->AnswerAll(*surplus, Busy());
    }
  }
  state_->changed.notify_all();
}

void GrammarChecker::Stop() {
  answerer_.reset();
  std::vector<Answer> unheard;  // ends behind the lock, and waiters with it
  const std::lock_guard lock(state_->mutex);
  for (const auto* checks : {&state_->queue.queued(), &state_->queue.running()}) {
    for (const CheckQueue::Check& check : *checks) state_->AnswerAll(*check, Busy());
  }
  unheard.swap(state_->answers);
}

}  // namespace penstock::router
