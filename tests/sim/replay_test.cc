#include "sim/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/log/input_log.h"
#include "sim/run.h"
#include "sim/scenario.h"

namespace penstock::sim {
namespace {

using ::testing::HasSubstr;

std::string LogOf(std::uint64_t seed) { return RunScenario(DrawScenario(seed), true).log; }

TEST(Replay, ARecordedRunGivesTheSameOutputs) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const ReplayReport report = Replay(LogOf(seed));
    EXPECT_TRUE(report.good()) << "seed " << seed << ": " << report.error;
    EXPECT_EQ(report.compared, report.inputs);
    EXPECT_GT(report.inputs, 0u);
  }
}

// The second input has a wrong digest.
TEST(Replay, ReportsTheFirstInputWithOtherOutputs) {
  const scheduler::Input drain{Time(Duration(1)), scheduler::Drain{}};
  const std::string log = scheduler::EncodeLogHeader({}) + scheduler::EncodeInput(drain) +
                          scheduler::EncodeInput(drain) + scheduler::EncodeOutputDigest(1);
  const ReplayReport report = Replay(log);
  EXPECT_EQ(report.inputs, 2u);
  EXPECT_EQ(report.compared, 1u);
  EXPECT_EQ(report.differs_at, 2u);
  EXPECT_FALSE(report.good());
}

TEST(Replay, ReplaysATruncatedLogUpToTheCut) {
  const std::string log = LogOf(3);
  const ReplayReport whole = Replay(log);
  const ReplayReport cut = Replay(std::string_view(log).substr(0, log.size() - 20));
  EXPECT_THAT(cut.error, HasSubstr("cut off"));
  EXPECT_GT(cut.inputs, 0u);
  EXPECT_LE(cut.inputs, whole.inputs);
  EXPECT_FALSE(cut.differs_at);
}

TEST(Replay, SettingsThatCannotRunAreAnError) {
  scheduler::Config config;
  config.max_step_tokens = 0;
  EXPECT_THAT(Replay(scheduler::EncodeLogHeader(config)).error, HasSubstr("max-step-tokens"));
}

// The checker checks a replayed log as it checks a simulated run.
TEST(Replay, RunsTheChecker) {
  const Time now{Duration(1)};
  scheduler::GroupUp up{GroupId(0), Epoch(1), {8, 4, 2, 32, 64, false}, {}};
  scheduler::Arrival arrival;
  arrival.request = RequestId(1);
  arrival.prompt = {1, 2, 3};
  arrival.max_new_tokens = 4;
  StepResult result;
  result.epoch = Epoch(1);
  result.step = StepId(1);
  result.sequences = {{SlotId(0), SequenceId(1), {{5}}, 3, ShardFinish::kNone, "", {}}};
  const std::string log = scheduler::EncodeLogHeader({}) + scheduler::EncodeInput({now, up}) +
                          scheduler::EncodeInput({now, arrival}) +
                          scheduler::EncodeInput({now, scheduler::StepDone{GroupId(0), result}});
  const ReplayReport report = Replay(log);
  EXPECT_EQ(report.tokens, 1u);
  EXPECT_TRUE(report.good()) << report.findings.front();
}

}  // namespace
}  // namespace penstock::sim
