#include "tools/replay/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace penstock::replay {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

sim::FleetResult TwoRequests() {
  sim::FleetResult result;
  sim::RequestRecord record;
  record.arrival = milliseconds(500);
  record.first_token = milliseconds(520);
  record.end = milliseconds(600);
  record.worst_gap = milliseconds(30);
  record.prompt_tokens = 100;
  record.output_tokens = 4;
  result.requests = {record, sim::RequestRecord{}};
  result.gaps_ms = {30, 20, 10};
  result.computed_tokens = {100};
  result.steps = {{milliseconds(0), 0, 3, 10, 7, 5}};
  result.end = milliseconds(600);
  return result;
}

TEST(Report, JsonHasWhatTheTableHas) {
  const sim::Summary summary = sim::Summarise(TwoRequests(), {});
  const auto json = boost::json::parse(ToJson(summary, 12.5)).as_object();
  EXPECT_EQ(json.at("requests").to_number<int>(), 2);
  EXPECT_EQ(json.at("failed").to_number<int>(), 1);
  EXPECT_EQ(json.at("rate").to_number<double>(), 12.5);
  EXPECT_EQ(json.at("inter_token_ms").at("p50").to_number<double>(), 20);
  EXPECT_EQ(json.at("attainment").to_number<double>(), 0.5);
  EXPECT_THAT(ToText(summary), HasSubstr("requests 2, failed 1"));
}

TEST(Report, CsvHasALinePerRequestAndEmptyCellsForTheUnanswered) {
  EXPECT_EQ(ToCsv(TwoRequests()),
            "arrival_s,ttft_ms,end_to_end_ms,worst_gap_ms,prompt_tokens,cached_tokens,"
            "output_tokens,preemptions\n"
            "0.500000,20.000,100.000,30.000,100,0,4,0\n"
            "0.000000,,,0.000,0,0,0,0\n");
}

TEST(Report, PictureHasBothRunsInTheColoursOfTheirModes) {
  const sim::FleetResult result = TwoRequests();
  const sim::FleetResult nothing;
  const std::string svg = ToSvg({{"continuous", &result}, {"static", &nothing}});
  EXPECT_THAT(svg, HasSubstr("class=\"dynamic\""));
  EXPECT_THAT(svg, HasSubstr("class=\"static\""));
  EXPECT_THAT(svg, HasSubstr("ms from arrival"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

}  // namespace
}  // namespace penstock::replay
