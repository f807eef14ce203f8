#include "shard/backend/cuda/completion_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <vector>

namespace penstock::shard::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A device that reaches a mark when the test says so.
class SlowDevice {
 public:
  absl::Status Wait(CompletionWatch::Mark mark) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_ >= mark || !failure_.ok(); });
    return reached_ >= mark ? absl::OkStatus() : failure_;
  }
  void Reach(CompletionWatch::Mark mark) {
    const std::lock_guard lock(mutex_);
    reached_ = mark;
    changed_.notify_all();
  }
  void Fail() {
    const std::lock_guard lock(mutex_);
    failure_ = absl::InternalError("an illegal address");
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  CompletionWatch::Mark reached_ = 0;
  absl::Status failure_;
};

TEST(CompletionWatchTest, CallsInOrderAndWaitsForTheMarkAlone) {
  SlowDevice device;
  std::vector<int> calls;
  {
    CompletionWatch watch([&](CompletionWatch::Mark mark) { return device.Wait(mark); });
    for (int i = 1; i <= 3; ++i) {
      ASSERT_TRUE(
          watch.Add(static_cast<CompletionWatch::Mark>(i), [&, i] { calls.push_back(i); }).ok());
    }
    device.Reach(1);
    EXPECT_TRUE(watch.WaitFor(1).ok());  // marks 2 and 3 are still to come
    device.Reach(3);
    EXPECT_TRUE(watch.WaitFor(3).ok());
    EXPECT_TRUE(watch.WaitFor(2).ok());
  }
  EXPECT_THAT(calls, ElementsAre(1, 2, 3));
}

TEST(CompletionWatchTest, AStuckDeviceIsReportedAtTheDeadlineAndRefusedWhenFull) {
  SlowDevice device;
  CompletionWatch watch([&](CompletionWatch::Mark mark) { return device.Wait(mark); },
                        std::chrono::milliseconds(20));
  for (std::size_t i = 1; i <= CompletionWatch::kMostWaiting; ++i) {
    EXPECT_FALSE(watch.Full());
    ASSERT_TRUE(watch.Add(i, nullptr).ok());
  }
  EXPECT_TRUE(watch.Full());
  EXPECT_EQ(watch.Add(100, nullptr).code(), absl::StatusCode::kResourceExhausted);
  const absl::Status late = watch.WaitFor(1);
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), HasSubstr("not finished a step within 20 ms"));
  device.Reach(100);
}

TEST(CompletionWatchTest, AFailedDeviceFailsEveryLaterWaitAndStillCallsBack) {
  SlowDevice device;
  int calls = 0;
  {
    CompletionWatch watch([&](CompletionWatch::Mark mark) { return device.Wait(mark); });
    ASSERT_TRUE(watch.Add(1, [&] { ++calls; }).ok());
    ASSERT_TRUE(watch.Add(2, [&] { ++calls; }).ok());
    device.Fail();
    EXPECT_EQ(watch.WaitFor(1).message(), "an illegal address");
    EXPECT_EQ(watch.WaitFor(2).message(), "an illegal address");
  }
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace penstock::shard::cuda
