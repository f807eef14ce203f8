#include "common/open_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

namespace penstock {
namespace {

// In a process of its own: a hard limit that was lowered stays low.
TEST(OpenFilesTest, TheSoftLimitRisesToTheHardOne) {
  const auto raise = [] {
    const rlimit low{64, 200};
    if (::setrlimit(RLIMIT_NOFILE, &low) != 0) std::exit(2);
    const std::uint64_t raised = RaiseOpenFiles();
    rlimit now{};
    ::getrlimit(RLIMIT_NOFILE, &now);
    std::exit(raised == 200 && now.rlim_cur == 200 ? 0 : 1);
  };
  EXPECT_EXIT(raise(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace penstock
