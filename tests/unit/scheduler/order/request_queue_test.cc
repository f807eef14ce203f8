#include "scheduler/order/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;

constexpr GroupId kGroup{0};

Arrival Request(std::uint64_t id, std::int32_t priority = 0, std::uint32_t predicted = 0) {
  Arrival arrival;
  arrival.request = RequestId(id);
  arrival.priority = priority;
  arrival.predicted_tokens = predicted;
  arrival.max_new_tokens = 100;
  return arrival;
}

RequestQueue Queue(Order order, std::uint32_t capacity = 4096, std::uint32_t bound = 4096) {
  return {capacity, [order] { return MakeKeyOrder(order); }, {order == Order::kFcfs ? 0 : bound}};
}

// By priority; a request is due after three steps.
RequestQueue DueAfterThreeSteps(std::uint32_t capacity) {
  return {capacity, [] { return MakeKeyOrder(Order::kPriority); }, {100, 3}};
}

const WaitingRequest* Due(RequestQueue& queue) {
  return queue.Due([](const WaitingRequest&) { return true; });
}

std::vector<std::uint64_t> AdmitAll(RequestQueue& queue) {
  std::vector<std::uint64_t> order;
  while (WaitingRequest* front = queue.Front(kGroup)) {
    order.push_back(queue.Admit(*front).request.request.value());
  }
  return order;
}

TEST(RequestQueue, OldestFirstAndBounded) {
  RequestQueue queue = Queue(Order::kFcfs, 2);
  queue.Push(Request(1));
  EXPECT_FALSE(queue.full());
  queue.Push(Request(2));
  EXPECT_TRUE(queue.full());
  EXPECT_THAT(AdmitAll(queue), ElementsAre(1, 2));
  EXPECT_TRUE(queue.empty());
}

TEST(RequestQueue, ACancelledRequestLeavesTheQueue) {
  RequestQueue queue = Queue(Order::kFcfs);
  for (std::uint64_t id = 1; id <= 3; ++id) queue.Push(Request(id));
  queue.Remove(*queue.Find(RequestId(2)));
  EXPECT_EQ(queue.Find(RequestId(2)), nullptr);
  EXPECT_THAT(AdmitAll(queue), ElementsAre(1, 3));
}

TEST(RequestQueue, TheLargestPriorityIsFirstThenTheOldest) {
  RequestQueue queue = Queue(Order::kPriority);
  queue.Push(Request(1, -1));
  queue.Push(Request(2, 5));
  queue.Push(Request(3, 0));
  queue.Push(Request(4, 5));
  EXPECT_THAT(AdmitAll(queue), ElementsAre(2, 4, 3, 1));
}

TEST(RequestQueue, TheShortestForecastIsFirstAndWithoutOneTheWorstCaseCounts) {
  RequestQueue queue = Queue(Order::kShortestPredicted);
  queue.Push(Request(1));
  queue.Push(Request(2, 0, 60));
  queue.Push(Request(3, 0, 7));
  EXPECT_THAT(AdmitAll(queue), ElementsAre(3, 2, 1));
}

TEST(RequestQueue, BeforeAndAfterAreTheNeighboursInTheOrder) {
  RequestQueue queue = Queue(Order::kPriority);
  WaitingRequest& low = queue.Push(Request(1, 1));
  WaitingRequest& high = queue.Push(Request(2, 3));
  WaitingRequest& middle = queue.Push(Request(3, 2));
  std::vector<RequestId> firsts;
  queue.AddFirsts(firsts);
  EXPECT_THAT(firsts, ElementsAre(RequestId(2)));
  EXPECT_EQ(queue.Before(middle, high), &high);
  EXPECT_EQ(queue.Before(low, high), &middle);
  EXPECT_EQ(queue.After(high), &middle);
  EXPECT_EQ(queue.After(low), nullptr);
}

TEST(RequestQueue, PreemptedRequestsAreFirstByArrival) {
  RequestQueue queue = Queue(Order::kPriority, 2);
  Work first = queue.Admit(queue.Push(Request(1)));
  Work second = queue.Admit(queue.Push(Request(2)));
  queue.Push(Request(3, 9));
  queue.Push(Request(4, 9));
  second.preemptions = first.preemptions = 1;
  first.generated = {7, 8};
  WaitingRequest& later = queue.PushRestart(std::move(second));
  WaitingRequest& earlier = queue.PushRestart(std::move(first));
  EXPECT_TRUE(queue.full()) << "preempted requests take no place of a new one";
  EXPECT_EQ(queue.Before(later, earlier), &earlier);
  EXPECT_EQ(queue.After(earlier), &later);
  EXPECT_THAT(earlier.generated, ElementsAre(7, 8));
  EXPECT_THAT(AdmitAll(queue), ElementsAre(1, 2, 3, 4));
}

TEST(RequestQueue, TheOneThatWaitedLongestIsNextWhenItIsDue) {
  RequestQueue queue = DueAfterThreeSteps(100);
  queue.Push(Request(1, 0));
  queue.CountStep();
  queue.Push(Request(2, 5));
  queue.Push(Request(3, 1));
  queue.CountStep();
  EXPECT_EQ(Due(queue), nullptr);
  Work second = queue.Admit(*queue.Front(kGroup));
  EXPECT_EQ(second.request.request, RequestId(2));
  EXPECT_FALSE(second.due);
  queue.CountStep();
  ASSERT_EQ(Due(queue), queue.Find(RequestId(1)));
  Work first = queue.Admit(*queue.Front(kGroup));
  EXPECT_EQ(first.request.request, RequestId(1));
  EXPECT_TRUE(first.due);
  EXPECT_EQ(Due(queue), nullptr) << "the third came a step later";
}

TEST(RequestQueue, ARequestThatYieldedWaitsInItsOrderAsTheYoungest) {
  RequestQueue queue = DueAfterThreeSteps(2);
  Work yielded = queue.Admit(queue.Push(Request(1, 5)));
  queue.Push(Request(2, 9));
  queue.Push(Request(3, 1));
  queue.CountStep();
  yielded.yielded = true;
  yielded.generated = {7};
  queue.PushYielded(std::move(yielded));
  EXPECT_TRUE(queue.full()) << "it takes no place of a new one";
  EXPECT_THAT(queue.Ran(), ElementsAre(queue.Find(RequestId(1))));
  for (int step = 0; step < 2; ++step) queue.CountStep();
  ASSERT_EQ(Due(queue), queue.Find(RequestId(2))) << "those that came before it are due before";
  EXPECT_THAT(AdmitAll(queue), ElementsAre(2, 3, 1));
}

TEST(RequestQueue, TheOldestIsFirstAtTheBound) {
  RequestQueue queue = Queue(Order::kPriority, 100, 3);
  for (std::uint64_t id = 1; id <= 2; ++id) queue.Push(Request(id, 0));
  for (std::uint64_t id = 3; id <= 9; ++id) queue.Push(Request(id, 1));
  EXPECT_THAT(AdmitAll(queue), ElementsAre(3, 4, 5, 1, 2, 6, 7, 8, 9));
}

// A reference model that counts how often each waiting request was overtaken.
class OvertakingModel {
 public:
  void Push(std::uint64_t id) { waiting_.push_back({id, 0}); }
  void Remove(std::uint64_t id) {
    std::erase_if(waiting_, [id](const auto& w) { return w.first == id; });
  }
  void Admit(std::uint64_t id) {
    for (auto& [other, count] : waiting_) count += other < id ? 1 : 0;
    Remove(id);
  }
  std::uint32_t Most() const {
    std::uint32_t most = 0;
    for (const auto& [id, count] : waiting_) most = std::max(most, count);
    return most;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> waiting_;
};

// G6, with random requests.
TEST(RequestQueue, NoRequestIsOvertakenMoreThanTheBound) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto order = static_cast<Order>(
        std::array{Order::kFcfs, Order::kPriority, Order::kShortestPredicted}[seed % 3]);
    const auto bound = static_cast<std::uint32_t>(order == Order::kFcfs ? 0 : 1 + random() % 20);
    RequestQueue queue = Queue(order, 64, bound);
    OvertakingModel model;
    std::vector<Work> running;
    std::uint64_t last = 0;
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t dice = random() % 10;
      WaitingRequest* front = queue.Front(kGroup);
      if (dice < 5 && !queue.full()) {
        const auto key = static_cast<std::uint32_t>(random() % 50);
        queue.Push(Request(++last, static_cast<std::int32_t>(key), key + 1));
        model.Push(last);
      } else if (dice < 8 && front != nullptr) {
        if (!front->restart()) model.Admit(front->request.request.value());
        running.push_back(queue.Admit(*front));
      } else if (dice == 8 && last > 0) {
        const std::uint64_t id = 1 + random() % last;
        if (WaitingRequest* found = queue.Find(RequestId(id))) queue.Remove(*found);
        model.Remove(id);
      } else if (!running.empty()) {
        ++running.back().preemptions;
        queue.PushRestart(std::move(running.back()));
        running.pop_back();
      }
      ASSERT_EQ(queue.most_overtaken(), model.Most()) << "seed " << seed << " input " << i;
      ASSERT_LE(model.Most(), bound) << "seed " << seed << " input " << i;
    }
  }
}

}  // namespace
}  // namespace penstock::scheduler
