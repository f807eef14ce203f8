#include "tools/simshard/fault_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/status.h"

namespace penstock::simshard {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

FaultScript Parse(std::string_view text, std::uint64_t seed = 0) {
  auto script = FaultScript::Parse(text, seed);
  EXPECT_TRUE(script.ok()) << script.status();
  return *std::move(script);
}

std::vector<std::uint64_t> StepsThatStrike(FaultScript script, std::uint64_t last) {
  std::vector<std::uint64_t> steps;
  for (std::uint64_t step = 1; step <= last; ++step) {
    if (script.At(step).delay > Duration(0)) steps.push_back(step);
  }
  return steps;
}

TEST(FaultScriptTest, EachRankGetsItsOwnFaults) {
  const FaultScript script = Parse(
      "kill at=3 group=1 rank=0  # the first\n"
      "slow from=2 to=4 factor=4; late from=2 ms=20 rank=1\n\n");
  FaultScript other = script.For(0, 0);
  EXPECT_FALSE(other.At(3).kill);
  EXPECT_EQ(other.At(3).factor, 4u);
  EXPECT_EQ(other.At(5).factor, 1u);
  EXPECT_EQ(other.At(3).delay, Duration(0));
  FaultScript both = script.For(0, 1);
  EXPECT_EQ(both.At(1).delay, Duration(0));
  EXPECT_EQ(both.At(1000).delay, milliseconds(20));
  FaultScript victim = script.For(1, 0);
  EXPECT_FALSE(victim.At(2).kill);
  EXPECT_TRUE(victim.At(3).kill);
}

TEST(FaultScriptTest, AtHappensOnceUnlessTimesIsSet) {
  FaultScript once = Parse("fail at=5").For(0, 0);
  EXPECT_TRUE(once.At(5).fail);
  EXPECT_FALSE(once.At(5).fail);
  FaultScript twice = Parse("fail times=2 at=5").For(0, 0);
  EXPECT_TRUE(twice.At(5).fail);
  EXPECT_TRUE(twice.At(5).fail);
  EXPECT_FALSE(twice.At(5).fail);
}

TEST(FaultScriptTest, TheSeedDecidesWhichStepsAProbabilitySelects) {
  const char* text = "late from=1 ms=1 probability=0.1";
  const auto steps = StepsThatStrike(Parse(text, 7).For(0, 0), 1000);
  EXPECT_GT(steps.size(), 60u);
  EXPECT_LT(steps.size(), 140u);
  EXPECT_EQ(steps, StepsThatStrike(Parse(text, 7).For(0, 0), 1000));
  // Ranks of a group get a fault together; groups do not.
  EXPECT_EQ(steps, StepsThatStrike(Parse(text, 7).For(0, 1), 1000));
  EXPECT_NE(steps, StepsThatStrike(Parse(text, 7).For(1, 0), 1000));
  EXPECT_NE(steps, StepsThatStrike(Parse(text, 8).For(0, 0), 1000));
}

TEST(FaultScriptTest, ErrorsNameTheFaultAndItsValues) {
  const auto error = [](std::string_view text) {
    return Message(FaultScript::Parse(text, 0).status());
  };
  EXPECT_THAT(error("explode at=1"), HasSubstr("--faults explode: must be kill, fail, hang"));
  EXPECT_THAT(error("kill at=soon"), HasSubstr("--faults at=soon: must be at=N with a number N"));
  EXPECT_THAT(error("kill when=1"), HasSubstr("--faults when=1: must be at, from"));
  EXPECT_THAT(error("kill 5"), HasSubstr("--faults 5: must be key=value"));
  EXPECT_THAT(error("kill"), HasSubstr("with a step"));
  EXPECT_THAT(error("stall at=1"), HasSubstr("with ms=N"));
  EXPECT_THAT(error("slow from=1"), HasSubstr("factor=N above 1"));
  EXPECT_TRUE(Parse(" \n# nothing\n ; ").empty());
}

}  // namespace
}  // namespace penstock::simshard
