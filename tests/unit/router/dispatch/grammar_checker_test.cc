// Verdicts on grammars. Most checks here wait at a gate instead of compiling, so that no test
// depends on the machine's speed.
#include "router/dispatch/grammar_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "router/dispatch/grammar_trial.h"
#include "tests/unit/support/paths.h"

namespace penstock::router {
namespace {

using testing::HasSubstr;

constexpr auto kDeadline = std::chrono::seconds(30);

class Waiter final : public GrammarWaiter {
 public:
  bool Waits() const override { return waits_; }
  void OnVerdict(GrammarVerdict verdict) override { promise_.set_value(std::move(verdict)); }

  void Leave() { waits_ = false; }
  bool Answered() { return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  // The verdict: "fits" if the grammar can be enforced, "busy", or the error; "" after the
  // deadline.
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

class GrammarCheckerTest : public testing::Test {
 protected:
  GrammarCheckerTest() {
    auto tokenizer = text::Tokenizer::Load(testing_support::SourcePath("demo/model"));
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    checker_ = std::make_unique<GrammarChecker>(*tokenizer, (*tokenizer)->vocabulary(),
                                                std::vector<TokenId>{0});
  }
  ~GrammarCheckerTest() override { Open(); }  // before the checker waits for its threads

  std::shared_ptr<Waiter> Ask(Grammar grammar, Duration ago = Duration(0)) {
    auto waiter = std::make_shared<Waiter>();
    checker_->Check(std::move(grammar), SteadyNow() - ago, waiter);
    return waiter;
  }
  // A grammar whose check ends when the gate opens.
  Grammar Stuck(const std::string& name) {
    return {name, [gate = opened_, begun = begun_]() -> Grammar::Written {
              begun->Add();
              gate.wait();
              return std::string("stuck");
            }};
  }
  // Checks that occupy all threads until the gate opens.
  std::vector<std::shared_ptr<Waiter>> Occupy() {
    std::vector<std::shared_ptr<Waiter>> waiters;
    for (std::size_t i = 0; i < GrammarChecker::kThreads; ++i) {
      waiters.push_back(Ask(Stuck("thread " + std::to_string(i))));
    }
    EXPECT_TRUE(begun_->WaitFor(GrammarChecker::kThreads));
    return waiters;
  }
  void Open() {
    if (!std::exchange(is_open_, true)) gate_.set_value();
  }

  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  bool is_open_ = false;
  const std::shared_ptr<Begun> begun_ = std::make_shared<Begun>();
  std::unique_ptr<GrammarChecker> checker_;
};

TEST_F(GrammarCheckerTest, ThePartThatIsRefusedIsNamed) {
  Grammar grammar = Regex("(");
  grammar.parts = {{"tools[0]", {GrammarSpec::Kind::kJsonSchema, "{}"}},
                   {"tools[1]", {GrammarSpec::Kind::kJsonSchema, R"({"type":"wrong"})"}}};
  EXPECT_THAT(Ask(grammar)->Told(), testing::StartsWith("`tools[1]` is not valid: "));
}

TEST_F(GrammarCheckerTest, VerdictsAreGivenAndCached) {
  EXPECT_FALSE(checker_->Known(Regex("[ab]+")));
  EXPECT_EQ(Ask(Regex("[ab]+"))->Told(), "fits");
  EXPECT_THAT(Ask(Regex("("))->Told(), HasSubstr("grammar is not valid: unclosed group"));
  EXPECT_THAT(Ask(Regex("((a{1,100}){1,100}){1,100}"))->Told(), HasSubstr("not valid"));
  const auto known = checker_->Known(Regex("[ab]+"));
  ASSERT_TRUE(known);
  EXPECT_EQ(std::get<GrammarSpec>(*known).source, "[ab]+");
  EXPECT_TRUE(checker_->Known(Regex("(")));
}

TEST_F(GrammarCheckerTest, RefusalsOfSchemasNameNoOptionOfTheEngine) {
  const auto told = [this](const std::string& schema) {
    GrammarSpec spec{GrammarSpec::Kind::kJsonSchema, schema};
    return Ask({schema, [spec]() -> Grammar::Written { return spec; }})->Told();
  };
  EXPECT_THAT(told(R"({"oneOf":[{"type":"string"},{"minLength":1,"type":"string"}]})"),
              HasSubstr("`oneOf` is supported only where its alternatives exclude each other"));
  EXPECT_THAT(told(R"({"$ref":"http://a/b"})"),
              HasSubstr("`$ref` must lead to a part of the schema, `#/...`. Given: 'http://a/b'"));
}

TEST_F(GrammarCheckerTest, AFullQueueRefusesAtOnce) {
  Occupy();
  for (std::size_t i = 0; i < GrammarChecker::kQueue; ++i) Ask(Stuck(std::to_string(i)));
  EXPECT_EQ(Ask(Regex("a"))->Told(), "busy");
}

TEST_F(GrammarCheckerTest, ARequestThatWaitedTooLongInTheQueueIsRefusedAsBusy) {
  const auto occupied = Occupy();
  const auto late = Ask(Stuck("late"), GrammarChecker::kQueueLimit);
  const auto in_time = Ask(Regex("a|b"));
  Open();
  EXPECT_EQ(late->Told(), "busy");
  EXPECT_EQ(in_time->Told(), "fits");
  for (const auto& waiter : occupied) EXPECT_EQ(waiter->Told(), "stuck");
}

TEST_F(GrammarCheckerTest, ProcessorTimeIsLimited) {
  const auto spend = []() -> Grammar::Written {
    const CpuLimit limit;
    while (!limit.IsUsedUp()) {
    }
    return GrammarSpec{GrammarSpec::Kind::kRegex, "a+"};
  };
  EXPECT_THAT(Ask({"slow", spend})->Told(), HasSubstr("it takes more than 250 ms"));
  EXPECT_EQ(Ask(Regex("a+"))->Told(), "fits") << "the next check has its own limit";
}

TEST_F(GrammarCheckerTest, ChecksRunAtBackgroundPriority) {
  std::atomic<int> nice = -1;
  const auto look = [&nice]() -> Grammar::Written {
    nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
    return std::string("seen");
  };
  EXPECT_EQ(Ask({"nice", look})->Told(), "seen");
  EXPECT_EQ(nice, 5);
}

TEST_F(GrammarCheckerTest, EqualGrammarsAreCheckedOnce) {
  std::vector<std::shared_ptr<Waiter>> all;
  for (int i = 0; i < 300; ++i) all.push_back(Ask(Stuck("the same")));
  Open();
  for (const auto& waiter : all) EXPECT_EQ(waiter->Told(), "stuck");
  EXPECT_EQ(begun_->count(), 1u);
}

TEST_F(GrammarCheckerTest, AGrammarWhoseClientsHaveGoneIsNotChecked) {
  Occupy();
  const auto gone = Ask(Stuck("gone"));
  gone->Leave();
  Open();
  EXPECT_EQ(gone->Told(), "busy");
  EXPECT_EQ(begun_->count(), GrammarChecker::kThreads);
}

TEST_F(GrammarCheckerTest, NoAnswerComesAfterStop) {
  const auto occupied = Occupy();
  std::promise<void> dropped;
  std::shared_ptr<void> token(nullptr, [&dropped](void*) { dropped.set_value(); });
  const auto queued = Ask({"queued", [token = std::move(token)]() -> Grammar::Written {
                             return std::string("checked");
                           }});
  std::thread stop([this] { checker_->Stop(); });
  EXPECT_EQ(dropped.get_future().wait_for(kDeadline), std::future_status::ready);
  Open();
  stop.join();
  EXPECT_FALSE(queued->Answered());
  for (const auto& waiter : occupied) {
    EXPECT_FALSE(waiter->Answered());
    EXPECT_EQ(waiter.use_count(), 1);
  }
}

}  // namespace
}  // namespace penstock::router
