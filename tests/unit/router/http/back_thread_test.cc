#include "router/http/back_thread.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace penstock::router {
namespace {

TEST(BackThreadTest, ComputesOnAnotherThreadAndOnlyThere) {
  const auto here = std::this_thread::get_id();
  const auto where = [] { return std::this_thread::get_id(); };
  EXPECT_EQ(InBack(where), here);  // without one: in place
  {
    const BackThread back;
    EXPECT_NE(InBack(where), here);
    EXPECT_EQ(InBack(where), InBack(where));
    EXPECT_EQ(InBack([&] { return InBack(where); }), InBack(where));
    std::thread other([&] { EXPECT_EQ(InBack(where), std::this_thread::get_id()); });
    other.join();
  }
  EXPECT_EQ(InBack(where), here);
}

TEST(BackThreadTest, OnlyWhatIsComputedStepsBack) {
  const BackThread back;
  EXPECT_EQ(InBack([] { return ::sched_getscheduler(0); }), SCHED_IDLE);
  EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST(BackThreadTest, GivesValuesAndFailures) {
  const BackThread back;
  EXPECT_EQ(*InBack([] { return std::make_unique<std::string>("moved"); }), "moved");
  const auto fail = []() -> int { throw std::runtime_error("no memory"); };
  EXPECT_THROW(InBack(fail), std::runtime_error);
  EXPECT_EQ(InBack([] { return 3; }), 3);  // and goes on
}

}  // namespace
}  // namespace penstock::router
