#include "common/thread_priority.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace penstock {
namespace {

TEST(ThreadPriorityTest, WhoStepsBackRunsOnlyWhereNobodyElseWants) {
  int stepped_back = -1;
  int other = -1;
  std::thread([&] {
    TakeShortTurns();
    other = ::sched_getscheduler(0);
    StepBack();
    stepped_back = ::sched_getscheduler(0);
  }).join();
  EXPECT_EQ(stepped_back, SCHED_IDLE);
  EXPECT_EQ(other, SCHED_OTHER);
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

}  // namespace
}  // namespace penstock
