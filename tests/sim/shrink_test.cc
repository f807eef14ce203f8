#include "sim/shrink.h"

#include <gtest/gtest.h>

#include "sim/scenario.h"

namespace penstock::sim {
namespace {

TEST(Shrink, APassingRunHasNoGuarantee) {
  const RunReport report = RunScenario(DrawScenario(1));
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(GuaranteeOf(report), "");
}

TEST(Shrink, TheGuaranteeIsTheTextBeforeTheColon) {
  RunReport report;
  report.findings = {"G7: more: text", "G1: later"};
  EXPECT_EQ(GuaranteeOf(report), "G7");
}

}  // namespace
}  // namespace penstock::sim
