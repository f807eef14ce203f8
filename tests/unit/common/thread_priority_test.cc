#include "common/thread_priority.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

namespace penstock {
namespace {

TEST(ThreadPriorityTest, WhoStepsBackRunsOnlyWhereNobodyElseWants) {
  int stepped_back = -1;
  int nice = 0;
  int other = -1;
  std::thread([&] {
    other = ::sched_getscheduler(0);
    StepBack();
    stepped_back = ::sched_getscheduler(0);
    nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
  }).join();
  EXPECT_TRUE(stepped_back == SCHED_IDLE || nice == 19) << "policy " << stepped_back;
  EXPECT_EQ(other, SCHED_OTHER);
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

}  // namespace
}  // namespace penstock
