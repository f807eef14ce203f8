#include "launcher/machine.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/support/temp_folder.h"

namespace penstock::launcher {
namespace {

TEST(MachineTest, AQuotaIsRoundedUpToCores) {
  EXPECT_EQ(CoresOfQuota("200000 100000"), 2);
  EXPECT_EQ(CoresOfQuota("150000 100000"), 2);
  EXPECT_EQ(CoresOfQuota("50000 100000"), 1);
  EXPECT_EQ(CoresOfQuota("max 100000"), 0);
  EXPECT_EQ(CoresOfQuota(""), 0);
}

TEST(MachineTest, GpusAreThoseOfTheListUntilAnEntryThatNamesNothing) {
  EXPECT_EQ(UsableGpus("2,GPU-7f"), (std::vector<std::string>{"2", "GPU-7f"}));
  EXPECT_EQ(UsableGpus("1,-1,0"), std::vector<std::string>{"1"});
  EXPECT_TRUE(UsableGpus("").empty());
}

TEST(MachineTest, GpusAreNumberedFromZero) {
  const TempFolder devices;
  EXPECT_TRUE(UsableGpus(nullptr, devices.path()).empty());
  for (const char* name : {"nvidia3", "nvidia12", "nvidiactl", "nvidia-uvm", "null"}) {
    std::ofstream(devices.path() + "/" + name) << "";
  }
  EXPECT_EQ(UsableGpus(nullptr, devices.path()), (std::vector<std::string>{"0", "1"}));
  EXPECT_TRUE(UsableGpus(nullptr, devices.path() + "/none").empty());
}

TEST(MachineTest, FindsCoresAndTheProgramFolder) {
  EXPECT_GE(UsableCores(), 1);
  ASSERT_TRUE(ProgramFolder().ok());
  EXPECT_TRUE(ProgramFolder()->starts_with('/'));
}

}  // namespace
}  // namespace penstock::launcher
