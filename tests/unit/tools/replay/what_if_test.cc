#include "tools/replay/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/fleet/summary.h"
#include "tests/unit/sim/fleet/recorded.h"
#include "tools/replay/what_if_page.h"

namespace penstock::replay {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

const sim::RecordedRun& Crowded() {
  static const auto& run =
      *new sim::RecordedRun(*sim::ReadRecordedRun(sim::RecordedLog(200, milliseconds(40), 4)));
  return run;
}

double MedianFirstToken(const sim::FleetResult& result) {
  return sim::Summarise(result, {}).ttft_ms.p50;
}

sim::FleetResult Outcome(const sim::FleetOptions& fleet, double factor = 1) {
  auto result = Simulate(Crowded(), Multiply(Crowded(), factor, 1), fleet);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : sim::FleetResult{};
}

TEST(WhatIf, TheSameSettingsGiveTheRecordedLatencies) {
  const sim::FleetResult same = Outcome(AsRecorded(Crowded()));
  EXPECT_NEAR(MedianFirstToken(same) / MedianFirstToken(Crowded().result), 1, 0.02);
}

TEST(WhatIf, AnotherGroupHelpsRequestsThatWait) {
  sim::FleetOptions fleet = AsRecorded(Crowded());
  fleet.groups = 2;
  EXPECT_LT(MedianFirstToken(Outcome(fleet)), MedianFirstToken(Crowded().result) / 2);
}

TEST(WhatIf, AnswersHaveTheirRecordedLength) {
  const sim::FleetResult result = Outcome(AsRecorded(Crowded()));
  for (const sim::RequestRecord& record : result.requests) EXPECT_EQ(record.output_tokens, 20u);
}

TEST(WhatIf, TwiceTheArrivalsAreInOrderAndShareNoPrefixWithTheirOriginals) {
  const Workload twice = Multiply(Crowded(), 2, 1);
  ASSERT_EQ(twice.trace.requests.size(), 400u);
  for (std::size_t i = 1; i < twice.trace.requests.size(); ++i) {
    EXPECT_GE(twice.trace.requests[i].arrival, twice.trace.requests[i - 1].arrival);
  }
  EXPECT_EQ(sim::Summarise(Outcome(AsRecorded(Crowded()), 2), {}).cached_tokens, 0u);
}

TEST(WhatIf, HalfTheArrivalsAreAboutHalf) {
  EXPECT_NEAR(static_cast<double>(Multiply(Crowded(), 0.5, 1).request.size()), 100, 25);
}

TEST(WhatIf, UsualChangesLeaveOutTheRecordedOrder) {
  for (const Change& change : UsualChanges(Crowded())) EXPECT_NE(change.text, "--order fcfs");
}

TEST(WhatIfPage, ShowsEveryColumnWithoutScripts) {
  const sim::FleetResult& result = Crowded().result;
  const std::vector<Column> columns = {{"recorded", result, sim::Summarise(result, {})}};
  const std::string page = ToPage(columns, {"a <note>"});
  EXPECT_THAT(page, HasSubstr("<th>recorded</th>"));
  EXPECT_THAT(page, HasSubstr("a &lt;note"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(ToText(columns), HasSubstr("time to first token, p50, ms"));
}

}  // namespace
}  // namespace penstock::replay
