#include "common/grpc/idle.h"

#include <gmock/gmock.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/grpc/closure_engine.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::system_clock;

constexpr auto kPatience = std::chrono::seconds(10);

class GrpcIdle : public testing::Test {
 protected:
  GrpcIdle() { KeepGrpcIdle(); }
  ~GrpcIdle() override {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // Nothing happens for so long. A poll of the queue itself needs no timer.
  void Rest(milliseconds time) {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_EQ(queue_.AsyncNext(&tag, &ok, Clock::now() + time), grpc::CompletionQueue::TIMEOUT);
  }

  // The next alarm that goes off or is cancelled.
  void* Next(bool& fired) {
    void* tag = nullptr;
    EXPECT_EQ(queue_.AsyncNext(&tag, &fired, Clock::now() + kPatience),
              grpc::CompletionQueue::GOT_EVENT);
    return tag;
  }

  grpc::CompletionQueue queue_;
};

std::string LineOf(const std::filesystem::path& file, const std::string& start = "") {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(start)) return line;
  }
  return "";
}

// Thread -> how often it has waited. Not this one, nor those that have its name: a sanitizer's.
std::map<std::string, std::string> Waits() {
  const std::string own = LineOf("/proc/self/comm");
  std::map<std::string, std::string> waits;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = LineOf(task.path() / "comm");
    if (name == own) continue;
    waits[name + " " + task.path().filename().string()] =
        LineOf(task.path() / "status", "voluntary_ctxt_switches:");
  }
  return waits;
}

TEST_F(GrpcIdle, NoThreadOfGrpcWakesUpWhileNothingIsDue) {
  grpc::Alarm soon;
  soon.Set(&queue_, Clock::now() + milliseconds(20), &soon);
  grpc::Alarm late;
  late.Set(&queue_, Clock::now() + std::chrono::hours(1), &late);
  std::promise<void> ran;
  ClosureEngine().Run([&ran] { ran.set_value(); });
  ran.get_future().wait();
  bool fired = false;
  EXPECT_EQ(Next(fired), &soon);
  Rest(milliseconds(100));  // the threads go to sleep
  const auto before = Waits();
  Rest(milliseconds(1300));
  const auto after = Waits();
  EXPECT_GE(before.size(), 2u) << "the timers' thread and the engine's";
  EXPECT_EQ(before, after);
  late.Cancel();
  EXPECT_EQ(Next(fired), &late);
  EXPECT_FALSE(fired);
}

TEST_F(GrpcIdle, ATimerThatIsSetAfterARestIsInTime) {
  for (const int rest_ms : {0, 400}) {
    Rest(milliseconds(rest_ms));
    for (const int after_ms : {1, 40, 250}) {
      const auto due = Clock::now() + milliseconds(after_ms);
      grpc::Alarm alarm;
      alarm.Set(&queue_, due, &alarm);
      bool fired = false;
      EXPECT_EQ(Next(fired), &alarm);
      EXPECT_TRUE(fired);
      EXPECT_GE(Clock::now(), due - milliseconds(2));
      EXPECT_LE(Clock::now(), due + milliseconds(500)) << after_ms << " ms after " << rest_ms;
    }
  }
}

TEST_F(GrpcIdle, EachOfManyTimersFiresOrIsCancelled) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  struct Timer {
    grpc::Alarm alarm;
    Clock::time_point due;
    bool cancelled = false;
  };
  std::list<Timer> timers;
  for (int i = 0; i < 400; ++i) {
    Timer& timer = timers.emplace_back();
    timer.due = Clock::now() + milliseconds(random() % 800);
    timer.alarm.Set(&queue_, timer.due, &timer);
    if (random() % 4 == 0) {
      auto victim = std::next(timers.begin(), random() % timers.size());
      victim->cancelled = true;
      victim->alarm.Cancel();
    }
  }
  for (std::size_t left = timers.size(); left > 0; --left) {
    bool fired = false;
    const auto* timer = static_cast<const Timer*>(Next(fired));
    ASSERT_NE(timer, nullptr);
    if (!fired) {
      EXPECT_TRUE(timer->cancelled);
      continue;
    }
    EXPECT_GE(Clock::now(), timer->due - milliseconds(2));
    EXPECT_LE(Clock::now(), timer->due + milliseconds(500));
  }
}

TEST(ClosureEngine, RunsClosuresInTheOrderOfTheirTimes) {
  ClosureEngine engine;
  std::promise<std::vector<int>> done;
  auto order = std::make_shared<std::vector<int>>();
  engine.RunAfter(milliseconds(60), [&done, order] { done.set_value(*order); });
  engine.RunAfter(milliseconds(40), [order] { order->push_back(3); });
  engine.RunAfter(milliseconds(20), [order] { order->push_back(2); });
  engine.Run([order, &engine] {
    order->push_back(1);
    EXPECT_TRUE(engine.IsWorkerThread());
  });
  EXPECT_THAT(done.get_future().get(), testing::ElementsAre(1, 2, 3));
  EXPECT_FALSE(engine.IsWorkerThread());
}

TEST(ClosureEngine, CancelsWhatHasNotRun) {
  ClosureEngine engine;
  const auto held = std::make_shared<int>();
  const auto never = engine.RunAfter(std::chrono::hours(24 * 365 * 100), [held] { FAIL(); });
  EXPECT_TRUE(engine.Cancel(never));
  EXPECT_FALSE(engine.Cancel(never));
  EXPECT_EQ(held.use_count(), 1) << "the closure is destroyed";
  std::promise<void> ran;
  const auto done = engine.RunAfter(milliseconds(0), [&ran] { ran.set_value(); });
  ran.get_future().wait();
  EXPECT_FALSE(engine.Cancel(done));
}

// As gRPC may: the last reference is dropped by a closure.
TEST(ClosureEngine, MayBeDestroyedByItsOwnClosure) {
  auto engine = std::make_shared<ClosureEngine>();
  std::promise<void> gone;
  ClosureEngine& raw = *engine;
  raw.Run([engine = std::move(engine), &gone]() mutable {
    engine.reset();
    gone.set_value();
  });
  gone.get_future().wait();
}

}  // namespace
}  // namespace penstock
