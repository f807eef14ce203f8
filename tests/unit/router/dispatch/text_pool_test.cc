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

// A strand that records its items in order and fails when it runs on two threads at once.
class CountingStrand final : public Strand {
 public:
  explicit CountingStrand(std::size_t expected) : expected_(expected) {}

  bool Put(int item) {
    const std::lock_guard lock(mutex_);
    mailbox_.push_back(item);
    return !std::exchange(scheduled_, true);
  }
  bool RunOnce() override {
    EXPECT_FALSE(running_.exchange(true)) << "a strand runs on one thread at a time";
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

TEST(TextPool, EachStrandKeepsItsOrderOnSeveralThreads) {
  constexpr int kItems = 2000;
  TextPool pool(4);
  std::vector<std::shared_ptr<CountingStrand>> strands;
  std::vector<std::future<std::vector<int>>> results;
  for (int i = 0; i < 8; ++i) {
    strands.push_back(std::make_shared<CountingStrand>(kItems));
    results.push_back(strands.back()->all());
  }
  for (int item = 0; item < kItems; ++item) {
    std::vector<std::shared_ptr<Strand>> ready;
    for (const auto& strand : strands) {
      if (strand->Put(item)) ready.push_back(strand);
    }
    pool.ScheduleAll(ready);
  }
  for (auto& result : results) {
    ASSERT_EQ(result.wait_for(kDeadline), std::future_status::ready);
    const std::vector<int> items = result.get();
    for (int i = 0; i < kItems; ++i) ASSERT_EQ(items[static_cast<std::size_t>(i)], i);
  }
}

TEST(TextPool, StopDropsWaitingStrandsAndRefusesNewOnes) {
  auto strand = std::make_shared<CountingStrand>(1);
  TextPool pool(1);
  pool.Stop();
  ASSERT_TRUE(strand->Put(1));
  pool.Schedule(strand);
  EXPECT_EQ(strand.use_count(), 1) << "a stopped pool keeps no strand alive";
}

}  // namespace
}  // namespace penstock::router
