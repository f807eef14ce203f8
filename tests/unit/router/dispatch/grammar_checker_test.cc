// Verdicts on grammars: who gets one, in what order, and by when. Most checks here hang at a gate
// instead of compiling, so that nothing depends on the machine's speed.
#include "router/dispatch/grammar_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "router/dispatch/check_queue.h"
#include "router/dispatch/grammar_trial.h"
#include "router/dispatch/grammar_tries.h"
#include "tests/unit/support/paths.h"

namespace penstock::router {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kDeadline = std::chrono::seconds(30);

class Waiter final : public GrammarWaiter {
 public:
  bool Waits() const override { return waits_; }
  void OnVerdict(GrammarVerdict verdict) override { promise_.set_value(std::move(verdict)); }

  void Leave() { waits_ = false; }
  bool Answered() { return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  // What the client is told, "fits" for a grammar that can be enforced, "" after the deadline.
  std::string Told() {
    if (future_.wait_for(kDeadline) != std::future_status::ready) return "";
    const auto verdict = future_.get();
    const auto* refusal = std::get_if<GrammarRefusal>(&verdict);
    if (refusal == nullptr) return "fits";
    return refusal->busy ? "busy" : refusal->message;
  }

 private:
  std::atomic<bool> waits_{true};
  std::promise<GrammarVerdict> promise_;
  std::future<GrammarVerdict> future_ = promise_.get_future();
};

Grammar Regex(std::string source) {
  GrammarSpec spec{GrammarSpec::Kind::kRegex, source};
  return {std::move(source), [spec = std::move(spec)]() -> Grammar::Written { return spec; }};
}

// Counts the checks that have begun.
class Begun {
 public:
  void Add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool WaitFor(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return count_ >= count; });
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
};

// Before Linux 6.4 that is the lowest usual priority.
bool IsBehind() {
  return ::sched_getscheduler(0) == SCHED_IDLE ||
         ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())) == 19;
}

class GrammarCheckerTest : public testing::Test {
 protected:
  GrammarCheckerTest() {
    auto tokenizer = text::Tokenizer::Load(testing_support::SourcePath("demo/model"));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    checker_ = std::make_unique<GrammarChecker>(*tokenizer, (*tokenizer)->vocabulary(),
                                                std::vector<TokenId>{0});
  }
  ~GrammarCheckerTest() override { Open(); }

  std::shared_ptr<Waiter> Ask(Grammar grammar, const std::string& tenant,
                              Duration ago = Duration(0)) {
    auto waiter = std::make_shared<Waiter>();
    checker_->Check(std::move(grammar), tenant, SteadyNow() - ago, waiter);
    return waiter;
  }
  // One whose check ends when the gate opens.
  Grammar Stuck(const std::string& name) {
    return {name, [gate = opened_, begun = begun_]() -> Grammar::Written {
              begun->Add();
              gate.wait();
              return std::string("stuck");
            }};
  }
  // The same; it has begun when it has used up its processor time.
  Grammar Greedy(const std::string& name) {
    return {name, [gate = opened_, begun = begun_]() -> Grammar::Written {
              while (!GrammarTrial::IsUsedUp(CLOCK_THREAD_CPUTIME_ID)) {
              }
              begun->Add();
              gate.wait();
              return std::string("greedy");
            }};
  }
  // A valid one that takes more than usual ones do each time; the tries after the first do `then`.
  Grammar Costly(
      const std::string& name, std::function<void(int number)> then = [](int) {}) {
    auto tries = std::make_shared<std::atomic<int>>(0);
    return {name, [name, tries, then = std::move(then), begun = begun_]() -> Grammar::Written {
              while (!GrammarTrial::IsCostly()) {
              }
              if (const int number = (*tries)++; number > 0) {
                begun->Add();
                then(number);
              }
              return GrammarSpec{GrammarSpec::Kind::kRegex, name};
            }};
  }
  void Open() {
    if (!std::exchange(is_open_, true)) gate_.set_value();
  }

  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  bool is_open_ = false;
  const std::shared_ptr<Begun> begun_ = std::make_shared<Begun>();
  const std::shared_ptr<Begun> behind_ = std::make_shared<Begun>();  // tries behind everybody
  std::unique_ptr<GrammarChecker> checker_;
};

TEST_F(GrammarCheckerTest, VerdictsAreGivenAndKept) {
  EXPECT_FALSE(checker_->Known(Regex("[ab]+")));
  EXPECT_EQ(Ask(Regex("[ab]+"), "")->Told(), "fits");
  EXPECT_THAT(Ask(Regex("("), "")->Told(), HasSubstr("grammar is not valid: unclosed group"));
  EXPECT_THAT(Ask(Regex("((a{1,100}){1,100}){1,100}"), "")->Told(), HasSubstr("not valid"));
  const auto known = checker_->Known(Regex("[ab]+"));
  ASSERT_TRUE(known);
  EXPECT_EQ(std::get<GrammarSpec>(*known).source, "[ab]+");
  EXPECT_TRUE(checker_->Known(Regex("(")));
}

TEST_F(GrammarCheckerTest, OneTenantsFloodLeavesASeatForOthers) {
  std::vector<std::shared_ptr<Waiter>> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(Ask(Stuck("slow " + std::to_string(i)), "greedy"));
  EXPECT_EQ(Ask(Regex("yes|no"), "modest")->Told(), "fits");
  EXPECT_EQ(Ask(Regex("a|b"), "other")->Told(), "fits");
  EXPECT_LE(begun_->count(), GrammarChecker::kSeatsOfTenant);
  Open();
  for (const auto& waiter : flood) {
    EXPECT_THAT(waiter->Told(), testing::AnyOf("busy", "stuck", HasSubstr("it takes more than")));
  }
}

TEST_F(GrammarCheckerTest, ThoseThatFindNoPlaceAreToldAtOnce) {
  std::vector<std::shared_ptr<Waiter>> flood;
  const std::size_t room = GrammarChecker::kSeatsOfTenant + GrammarChecker::kQueue;
  for (std::size_t i = 0; i < room + 10; ++i) {
    flood.push_back(Ask(Stuck("slow " + std::to_string(i)), "greedy"));
  }
  EXPECT_EQ(flood.back()->Told(), "busy");
  EXPECT_FALSE(flood.front()->Answered());
}

TEST_F(GrammarCheckerTest, LimitsCountFromTheArrival) {
  const auto first = Ask(Stuck("one"), "");
  const auto second = Ask(Greedy("two"), "");
  ASSERT_TRUE(begun_->WaitFor(2));
  const auto late = Ask(Stuck("three"), "", GrammarChecker::kQueueLimit);
  EXPECT_EQ(late->Told(), "busy");
  const auto joined = Ask(Greedy("two"), "", GrammarChecker::kAnswerLimit);
  EXPECT_THAT(joined->Told(), HasSubstr("it takes more than 250 ms"));
  EXPECT_THAT(second->Told(), HasSubstr("it takes more than 250 ms")) << "after two seconds";
}

TEST_F(GrammarCheckerTest, WithoutProcessorTimeNothingIsSaidOfTheGrammar) {
  const auto first = Ask(Stuck("one"), "");
  ASSERT_TRUE(begun_->WaitFor(1));
  EXPECT_EQ(Ask(Stuck("one"), "", GrammarChecker::kAnswerLimit)->Told(), "busy");
  Open();
  EXPECT_EQ(first->Told(), "stuck");
}

TEST_F(GrammarCheckerTest, EqualGrammarsAreCheckedOnce) {
  std::vector<std::shared_ptr<Waiter>> all;
  for (int i = 0; i < 300; ++i) all.push_back(Ask(Stuck("the same"), std::to_string(i % 3)));
  Open();
  for (const auto& waiter : all) EXPECT_EQ(waiter->Told(), "stuck");
  EXPECT_EQ(begun_->count(), 1u);
}

TEST_F(GrammarCheckerTest, WhoLeftIsNotCheckedForAndHearsOfIt) {
  const auto first = Ask(Stuck("one"), "");
  const auto second = Ask(Stuck("two"), "");
  const auto gone = Ask(Stuck("three"), "");
  gone->Leave();
  const auto news = Ask(Stuck("four"), "", GrammarChecker::kQueueLimit);  // wakes the checker
  EXPECT_EQ(news->Told(), "busy");
  EXPECT_EQ(gone->Told(), "busy");
}

TEST_F(GrammarCheckerTest, StopLeavesNobodyHanging) {
  const auto running = Ask(Stuck("one"), "");
  const auto second = Ask(Stuck("two"), "");
  const auto queued = Ask(Stuck("three"), "");
  checker_->Stop();
  EXPECT_FALSE(running->Answered() || queued->Answered());
  EXPECT_EQ(running.use_count(), 1) << "nobody holds on to it";
  EXPECT_EQ(queued.use_count(), 1);
}

TEST_F(GrammarCheckerTest, CostlyOnesAreTriedAgainBehindEverybody) {
  const auto count_behind = [begun = behind_](int) {
    if (IsBehind()) begun->Add();
  };
  const auto waiter = Ask(Costly("a+", count_behind), "");
  EXPECT_TRUE(behind_->WaitFor(1));
  EXPECT_THAT(waiter->Told(), testing::AnyOf("fits", "busy"));
}

TEST_F(GrammarCheckerTest, CostlyOnesLeaveTheSeatsToUsualOnes) {
  std::vector<std::shared_ptr<Waiter>> costly;
  const auto hang = [gate = opened_](int) { gate.wait(); };
  for (int i = 0; i < 20; ++i) {
    costly.push_back(Ask(Costly("a" + std::to_string(i), hang), "key " + std::to_string(i % 4)));
  }
  ASSERT_TRUE(begun_->WaitFor(GrammarChecker::kSeats)) << "as many as there are seats for them";
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Ask(Regex("b" + std::to_string(i)), "key " + std::to_string(i))->Told(), "fits");
  }
  Open();
  for (const auto& waiter : costly) EXPECT_THAT(waiter->Told(), testing::AnyOf("fits", "busy"));
}

TEST_F(GrammarCheckerTest, WhatGetsNoTimeBehindTheOthersIsTriedBesideThem) {
  std::atomic<int> nice = -1;
  const auto hang_behind = [&, gate = opened_](int) {
    if (IsBehind()) return gate.wait();
    nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  };
  EXPECT_EQ(Ask(Costly("a+", hang_behind), "")->Told(), "fits");
  EXPECT_EQ(nice, 5);
}

TEST_F(GrammarCheckerTest, TriesThatStandStillBehindTheOthersAreFew) {
  const auto hang_behind = [begun = behind_, gate = opened_](int) {
    if (!IsBehind()) return;
    begun->Add();
    gate.wait();
  };
  for (int i = 0; i < GrammarTries::kBehind + 2; ++i) {
    EXPECT_EQ(Ask(Costly("a" + std::to_string(i), hang_behind), "")->Told(), "fits");
  }
  EXPECT_TRUE(behind_->WaitFor(GrammarTries::kBehind));
  EXPECT_EQ(behind_->count(), std::size_t{GrammarTries::kBehind});
}

CheckQueue::Check Of(const std::string& tenant) {
  auto check = std::make_shared<GrammarCheck>();
  check->tenant = tenant;
  return check;
}

TEST(CheckQueue, TenantsTakeTurnsAndTheLongestQueueGivesWay) {
  CheckQueue queue(4, 3, 2);
  for (const char* tenant : {"a", "a", "a", "a"}) EXPECT_EQ(queue.Add(Of(tenant)), nullptr);
  const CheckQueue::Check surplus = queue.Add(Of("b"));
  ASSERT_NE(surplus, nullptr);
  EXPECT_EQ(surplus->tenant, "a");
  EXPECT_EQ(queue.Add(Of("a"))->tenant, "a") << "the new one";
  std::vector<std::string> begun;
  while (const CheckQueue::Check next = queue.Take()) begun.push_back(next->tenant);
  EXPECT_THAT(begun, ElementsAre("a", "b", "a"));
  queue.Release(queue.running().front());
  EXPECT_EQ(queue.Take()->tenant, "a");
  EXPECT_TRUE(queue.queued().empty());
}

TEST(CheckQueue, WhatIsPutOffTakesASeatOfItsOwnBehindTheOthers) {
  CheckQueue queue(2, 1, 1);
  queue.Add(Of("a"));
  const CheckQueue::Check first = queue.Take();
  queue.Add(Of("a"));
  EXPECT_EQ(queue.Take(), nullptr) << "no seat";
  EXPECT_EQ(queue.PutOff(first), nullptr);
  const CheckQueue::Check second = queue.Take();
  EXPECT_FALSE(second->costly);
  EXPECT_EQ(queue.Take(), first) << "beside the usual one";
  queue.Add(Of("a"));
  queue.Add(Of("a"));
  EXPECT_EQ(queue.PutOff(second), second) << "the queue is full";
}

}  // namespace
}  // namespace penstock::router
