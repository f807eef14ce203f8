#include "sim/fleet/recorded_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fleet/summary.h"
#include "tests/unit/sim/fleet/recorded.h"

namespace penstock::sim {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

RecordedRun Read(const std::string& log) {
  auto run = ReadRecordedRun(log);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *std::move(run) : RecordedRun{};
}

TEST(RecordedRun, HasTheTimesAndLengthsOfTheRequests) {
  const RecordedRun run = Read(RecordedLog(2, milliseconds(500), 4));
  ASSERT_EQ(run.requests.size(), 2u);
  EXPECT_EQ(run.groups, 1u);
  EXPECT_EQ(run.result.requests[0].arrival, Duration{0});
  EXPECT_EQ(run.result.requests[1].arrival, milliseconds(500));
  EXPECT_EQ(run.result.requests[1].output_tokens, 20u);
  EXPECT_EQ(run.trace.requests[1].prompt_tokens, 50u);
  // A prompt of 50 tokens takes 15 ms, and a step of one row 10.1 ms.
  EXPECT_EQ(*run.result.requests[1].first_token, milliseconds(515));
  EXPECT_EQ(run.result.requests[1].worst_gap, std::chrono::microseconds(10'100));
}

TEST(RecordedRun, SaysWhatAWaitingRequestWaitedFor) {
  const RecordedRun run = Read(RecordedLog(4, milliseconds(1), 1));
  Duration waited{0};
  for (const auto& [budget, time] : run.requests[3].waited) waited += time;
  EXPECT_GT(waited, milliseconds(500));
}

TEST(RecordedRun, StepTimesFollowTheRunNotTheWarmUp) {
  const RecordedRun run = Read(RecordedLog(50, milliseconds(20), 8, 1.5));
  scheduler::StepShape shape;
  shape.AddDecode(60);
  double sum = 0;
  StepTime step_time = run.step_time;
  for (int i = 0; i < 100; ++i) sum += Milliseconds(step_time(shape));
  EXPECT_NEAR(sum / 100, 1.5 * 10.1, 0.8);
}

TEST(RecordedRun, RefusesWhatIsNoInputLog) {
  EXPECT_THAT(ReadRecordedRun("no log").status().message(), HasSubstr("input log"));
}

TEST(RecordedRun, NeedsAWarmUp) {
  EXPECT_THAT(ReadRecordedRun(RecordedLog(2, milliseconds(1), 1, 1, false)).status().message(),
              HasSubstr("warm-up"));
}

TEST(RecordedRun, NeedsARequest) {
  EXPECT_THAT(ReadRecordedRun(RecordedLog(0, milliseconds(1), 1)).status().message(),
              HasSubstr("no request"));
}

}  // namespace
}  // namespace penstock::sim
