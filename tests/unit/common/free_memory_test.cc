#include "common/free_memory.h"

#include <gtest/gtest.h>

#include "tests/unit/support/temp_folder.h"

namespace penstock {
namespace {

class FreeMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    Write("/proc/meminfo", "MemTotal:       4000 kB\nMemAvailable:   2000 kB\n");
    Write("/proc/self/cgroup", "0::/outer/inner\n");
  }
  void Write(const std::string& path, const std::string& text) { folder_.Write(path, text); }

  const TempFolder folder_;
  const std::string& root_ = folder_.path();
};

TEST_F(FreeMemoryTest, IsMemAvailable) {
  EXPECT_EQ(FreeMemory(root_)->bytes, 2000u * 1024);
  EXPECT_EQ(FreeMemory(root_)->limit, "the machine's memory");
}

TEST_F(FreeMemoryTest, IsBoundedByEveryParentControlGroup) {
  Write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  Write("/sys/fs/cgroup/outer/inner/memory.current", "1\n");
  Write("/sys/fs/cgroup/outer/memory.max", "900000\n");
  Write("/sys/fs/cgroup/outer/memory.current", "200000\n");
  EXPECT_EQ(FreeMemory(root_)->bytes, 700000u);
  EXPECT_EQ(FreeMemory(root_)->limit, "/sys/fs/cgroup/outer/memory.max");
}

TEST_F(FreeMemoryTest, IsBoundedByAGroupOfVersion1) {
  Write("/proc/self/cgroup", "4:cpu,memory:/outer/inner\n1:name=systemd:/outer\n0::/\n");
  const std::string folder = "/sys/fs/cgroup/memory/outer/inner";
  Write(folder + "/memory.limit_in_bytes", "9223372036854771712\n");
  Write(folder + "/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(FreeMemory(root_)->bytes, 2000u * 1024);
  Write("/sys/fs/cgroup/memory/outer/memory.limit_in_bytes", "600000\n");
  Write("/sys/fs/cgroup/memory/outer/memory.usage_in_bytes", "200000\n");
  EXPECT_EQ(FreeMemory(root_)->bytes, 400000u);
  EXPECT_EQ(FreeMemory(root_)->limit, "/sys/fs/cgroup/memory/outer/memory.limit_in_bytes");
}

// The path is that of the host, which the container does not see.
TEST_F(FreeMemoryTest, IsBoundedByTheGroupOfAContainer) {
  Write("/proc/self/cgroup", "4:memory:/docker/4a25\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n");
  EXPECT_EQ(FreeMemory(root_)->bytes, 400000u);
}

TEST_F(FreeMemoryTest, IsBoundedByUlimit) {
  Write("/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max address space         1024000              unlimited            bytes     \n");
  Write("/proc/self/status", "Name:\tpenstock\nVmSize:\t     600 kB\n");
  EXPECT_EQ(FreeMemory(root_)->bytes, 400u * 1024);
  EXPECT_EQ(FreeMemory(root_)->limit, "ulimit -v");
}

TEST_F(FreeMemoryTest, IsZeroAboveTheLimit) {
  Write("/sys/fs/cgroup/outer/inner/memory.max", "100\n");
  Write("/sys/fs/cgroup/outer/inner/memory.current", "200\n");
  EXPECT_EQ(FreeMemory(root_)->bytes, 0u);
}

TEST_F(FreeMemoryTest, FailsWithoutMemAvailable) {
  Write("/proc/meminfo", "MemTotal:       4000 kB\n");
  EXPECT_FALSE(FreeMemory(root_).ok());
}

TEST_F(FreeMemoryTest, TheLimitIsTheLeastOfMachineGroupsAndUlimitWhateverIsUsed) {
  EXPECT_EQ(LimitOfMemory(root_)->bytes, 4000u * 1024);
  EXPECT_EQ(LimitOfMemory(root_)->name, "the machine's memory");
  EXPECT_FALSE(LimitOfMemory(root_)->was_set);
  Write("/sys/fs/cgroup/outer/memory.max", "900000\n");
  Write("/sys/fs/cgroup/outer/memory.current", "200000\n");
  EXPECT_EQ(LimitOfMemory(root_)->bytes, 900000u);
  EXPECT_EQ(LimitOfMemory(root_)->name, "/sys/fs/cgroup/outer/memory.max");
  EXPECT_TRUE(LimitOfMemory(root_)->was_set);
  Write("/proc/self/limits", "Max address space         512000       unlimited      bytes     \n");
  Write("/proc/self/status", "VmSize:\t     600 kB\n");
  EXPECT_EQ(LimitOfMemory(root_)->bytes, 512000u);
  EXPECT_EQ(LimitOfMemory(root_)->name, "ulimit -v");
}

TEST_F(FreeMemoryTest, AGroupAboveTheMachineSetsNoLimit) {
  Write("/sys/fs/cgroup/outer/memory.max", "9223372036854771712\n");
  Write("/sys/fs/cgroup/outer/memory.current", "200000\n");
  EXPECT_FALSE(LimitOfMemory(root_)->was_set);
}

}  // namespace
}  // namespace penstock
