#include "common/thread_priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

namespace penstock {
namespace {

int Nice() { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); }

TEST(ThreadPriorityTest, OnlyTheCallingThreadGetsBackgroundPriority) {
  const int before = Nice();
  int background = 0;
  std::thread([&] {
    UseBackgroundPriority();
    background = Nice();
  }).join();
  EXPECT_EQ(background, 5);
  EXPECT_EQ(Nice(), before);
}

}  // namespace
}  // namespace penstock
