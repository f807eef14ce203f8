#include "router/dispatch/grammar_checker.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "common/status.h"
#include "router/dispatch/check_queue.h"
#include "router/dispatch/grammar_trial.h"
#include "router/dispatch/verdict_cache.h"
#include "text/grammar.h"

namespace penstock::router {
namespace {

constexpr int kNice = 5;
using Vocabulary = absl::StatusOr<std::shared_ptr<const text::Vocabulary>>;

GrammarRefusal Busy() { return {true, "too many grammars are being checked"}; }

GrammarRefusal NotValid(const absl::Status& status) {
  return {false, "grammar is not valid: " + Message(status)};
}

std::size_t SizeOf(const GrammarVerdict& verdict) {
  const auto* spec = std::get_if<GrammarSpec>(&verdict);
  return spec == nullptr ? std::get<GrammarRefusal>(verdict).message.size() : spec->source.size();
}

std::chrono::steady_clock::time_point OnClock(Time at) {
  return std::chrono::steady_clock::time_point(
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(at.time_since_epoch()));
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
      AnswerLate(*check, now, kQueueLimit, Busy());
      if (check->waiting.empty()) queue.Drop(check);
    }
    for (const CheckQueue::Check& check : queue.running()) {
      const bool slow = check->cpu && GrammarTrial::IsUsedUp(*check->cpu);
      AnswerLate(*check, now, kAnswerLimit, slow ? NotValid(GrammarTrial::TooSlow()) : Busy());
    }
  }

  Time NextLimit() const {
    Time next = Time::max();
    for (const CheckQueue::Check& check : queue.queued()) {
      for (const auto& each : check->waiting) next = std::min(next, each.arrived + kQueueLimit);
    }
    for (const CheckQueue::Check& check : queue.running()) {
      for (const auto& each : check->waiting) next = std::min(next, each.arrived + kAnswerLimit);
    }
    return next;
  }

  // Without the lock, on a thread that does nothing else.
  GrammarVerdict Try(const Grammar& grammar) const {
    Grammar::Written written = grammar.write();
    if (auto* wrong = std::get_if<std::string>(&written)) {
      return GrammarRefusal{false, std::move(*wrong)};
    }
    auto spec = std::get<GrammarSpec>(std::move(written));
    if (spec.source.empty()) return spec;  // asks for nothing, as in TGI
    const Vocabulary& words = vocabulary.get();
    const absl::Status status =
        words.ok() ? GrammarTrial::Run(**words, eos_ids, spec) : words.status();
    if (!status.ok()) return NotValid(status);
    return spec;
  }

  void Finish(const CheckQueue::Check& check, GrammarVerdict verdict) {
    queue.Release(check);
    AnswerAll(*check, verdict);
    const std::size_t size = SizeOf(verdict);
    if (!check->grammar.source.empty()) {
      verdicts.Keep(std::move(check->grammar.source), std::move(verdict), size);
    }
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
    const Time until = state_->NextLimit();
    if (until == Time::max()) {
      state_->changed.wait(lock);
    } else {
      state_->changed.wait_until(lock, OnClock(until));
    }
  }

  void Begin(const CheckQueue::Check& check) {
    std::thread([state = state_, check] {
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
      clockid_t cpu{};
      if (::pthread_getcpuclockid(::pthread_self(), &cpu) == 0) {
        const std::lock_guard lock(state->mutex);
        check->cpu = cpu;
      }
      GrammarVerdict verdict = state->Try(check->grammar);
      const std::lock_guard lock(state->mutex);
      check->cpu.reset();
      state->Finish(check, std::move(verdict));
      state->changed.notify_all();
    }).detach();
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
