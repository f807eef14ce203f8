#include "router/dispatch/text_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace penstock::router {
namespace {

constexpr auto kDeadline = std::chrono::seconds(30);

// A lane that notes what it was given, in order, and complains when it runs twice at once.
class CountingLane final : public Lane {
 public:
  explicit CountingLane(std::size_t expected) : expected_(expected) {}

  bool Put(int item) {
    const std::lock_guard lock(mutex_);
    mailbox_.push_back(item);
    return !std::exchange(scheduled_, true);
  }
  bool RunOnce() override {
    EXPECT_FALSE(running_.exchange(true)) << "a lane runs on one thread at a time";
    std::vector<int> items;
    {
      const std::lock_guard lock(mutex_);
      items.swap(mailbox_);
    }
    done_.insert(done_.end(), items.begin(), items.end());
    if (done_.size() == expected_) all_.set_value(done_);
    running_ = false;
    const std::lock_guard lock(mutex_);
    scheduled_ = !mailbox_.empty();
    return scheduled_;
  }
  std::future<std::vector<int>> all() { return all_.get_future(); }

 private:
  const std::size_t expected_;
  std::mutex mutex_;
  std::vector<int> mailbox_;
  bool scheduled_ = false;
  std::atomic<bool> running_{false};
  std::vector<int> done_;
  std::promise<std::vector<int>> all_;
};

TEST(TextPool, EachLaneKeepsItsOrderOnSeveralThreads) {
  constexpr int kItems = 2000;
  TextPool pool(4);
  std::vector<std::shared_ptr<CountingLane>> lanes;
  std::vector<std::future<std::vector<int>>> results;
  for (int i = 0; i < 8; ++i) {
    lanes.push_back(std::make_shared<CountingLane>(kItems));
    results.push_back(lanes.back()->all());
  }
  for (int item = 0; item < kItems; ++item) {
    std::vector<std::shared_ptr<Lane>> ready;
    for (const auto& lane : lanes) {
      if (lane->Put(item)) ready.push_back(lane);
    }
    pool.ScheduleAll(ready);
  }
  for (auto& result : results) {
    ASSERT_EQ(result.wait_for(kDeadline), std::future_status::ready);
    const std::vector<int> items = result.get();
    for (int i = 0; i < kItems; ++i) ASSERT_EQ(items[static_cast<std::size_t>(i)], i);
  }
}

TEST(TextPool, StopDropsWhatWaitsAndTakesNothingMore) {
  auto lane = std::make_shared<CountingLane>(1);
  TextPool pool(1);
  pool.Stop();
  ASSERT_TRUE(lane->Put(1));
  pool.Schedule(lane);
  EXPECT_EQ(lane.use_count(), 1) << "a stopped pool keeps no lane alive";
}

}  // namespace
}  // namespace penstock::router
