#include "launcher/memory_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

namespace penstock::launcher {
namespace {

const ExitStatus kAborted{.by_signal = true, .code = SIGABRT};

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() { ::getrlimit(RLIMIT_AS, &before_); }
  ~MemoryLimitTest() override { ::setrlimit(RLIMIT_AS, &before_); }

  // So high that this process does not feel it.
  void Limit() const {
    const rlimit limit{rlim_t{64} << 40, before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  }

  rlimit before_{};
};

TEST_F(MemoryLimitTest, NamesTheLimitIfALineSaysThatMemoryIsMissing) {
  Limit();
  for (const std::string line :
       {"libtorch_cpu.so: failed to map segment from shared object",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "packed weights: cannot allocate 3414528 bytes", "memory allocation of 6 bytes failed",
        "  what():  Resource temporarily unavailable",
        "E0000 1 thd.cc:160] pthread_create failed: 11",
        "E0000 1 thread_manager.cc:193] Could not create grpc_sync_server worker-thread"}) {
    EXPECT_EQ(MemoryLimitError(kAborted, {"first", line, "last"}),
              "`ulimit -v 68719476736` (KiB) leaves too little memory; raise it or remove it")
        << line;
  }
  EXPECT_EQ(MemoryLimitError(kAborted, {"first", "another error"}), "");
}

TEST_F(MemoryLimitTest, WithoutALimitItIsNotTheCause) {
  if (before_.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "this process has a limit";
  EXPECT_EQ(MemoryLimitError(kAborted, {"std::bad_alloc"}), "");
}

TEST_F(MemoryLimitTest, NamesTheLimitIfAChildAbortsWithoutAWord) {
  EXPECT_EQ(MemoryLimitError(kAborted, {}), "");
  Limit();
  EXPECT_NE(MemoryLimitError(kAborted, {}), "");
  EXPECT_EQ(MemoryLimitError({.by_signal = true, .code = SIGKILL}, {}), "");
  EXPECT_EQ(MemoryLimitError({.by_signal = false, .code = 1}, {}), "");
}

}  // namespace
}  // namespace penstock::launcher
