#include "scheduler/request_queue.h"

#include <gtest/gtest.h>

namespace penstock::scheduler {
namespace {

Arrival Request(std::uint64_t id) {
  Arrival arrival;
  arrival.request = RequestId(id);
  return arrival;
}

TEST(RequestQueue, OldestFirstAndBounded) {
  RequestQueue queue(2);
  queue.Push(Request(1));
  EXPECT_FALSE(queue.full());
  queue.Push(Request(2));
  EXPECT_TRUE(queue.full());
  EXPECT_EQ(queue.Pop().request, RequestId(1));
  EXPECT_EQ(queue.Pop().request, RequestId(2));
  EXPECT_TRUE(queue.empty());
}

TEST(RequestQueue, ACancelledRequestLeavesItsPlace) {
  RequestQueue queue(3);
  for (std::uint64_t id = 1; id <= 3; ++id) queue.Push(Request(id));
  EXPECT_TRUE(queue.Remove(RequestId(2)));
  EXPECT_FALSE(queue.Remove(RequestId(2)));
  EXPECT_EQ(queue.Pop().request, RequestId(1));
  EXPECT_EQ(queue.Pop().request, RequestId(3));
}

}  // namespace
}  // namespace penstock::scheduler
