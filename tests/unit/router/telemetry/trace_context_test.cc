#include "router/telemetry/trace_context.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock::router {
namespace {

constexpr std::string_view kSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContext, AHeaderRoundTrips) {
  const auto context = ParseTraceContext(kSampled, "vendor=1,other=2");
  ASSERT_TRUE(context.has_value());
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->trace[0], 0x0a);
  EXPECT_EQ(context->trace[15], 0x9c);
  EXPECT_EQ(context->span[0], 0xb7);
  EXPECT_EQ(context->state, "vendor=1,other=2");
  EXPECT_EQ(FormatTraceparent(*context), kSampled);
}

TEST(TraceContext, OnlyTheLowestFlagSaysSampled) {
  const std::string head(kSampled.substr(0, 53));
  EXPECT_FALSE(ParseTraceContext(head + "00", "")->sampled);
  EXPECT_FALSE(ParseTraceContext(head + "02", "")->sampled);
  EXPECT_TRUE(ParseTraceContext(head + "03", "")->sampled);
}

TEST(TraceContext, LaterVersionsMayBeLonger) {
  const std::string rest(kSampled.substr(2));
  EXPECT_TRUE(ParseTraceContext("01" + rest, "").has_value());
  EXPECT_TRUE(ParseTraceContext("cc" + rest + "-more", "").has_value());
  EXPECT_FALSE(ParseTraceContext("cc" + rest + ".more", "").has_value());
  EXPECT_FALSE(ParseTraceContext("00" + rest + "-more", "").has_value());
  EXPECT_FALSE(ParseTraceContext("ff" + rest, "").has_value());
}

TEST(TraceContext, AMalformedHeaderIsIgnored) {
  const std::string good(kSampled);
  for (std::size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(ParseTraceContext(good.substr(0, i), "").has_value()) << i;
    for (const char wrong : {'A', 'g', ' ', '\0', '_'}) {
      std::string changed = good;
      changed[i] = wrong;
      EXPECT_FALSE(ParseTraceContext(changed, "").has_value()) << i << wrong;
    }
  }
  const std::string zeros(32, '0');
  EXPECT_FALSE(ParseTraceContext("00-" + zeros + "-b7ad6b7169203331-01", "").has_value());
  EXPECT_FALSE(
      ParseTraceContext("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "").has_value());
}

TEST(TraceContext, ATracestateThatIsTooLongIsLeftOut) {
  EXPECT_EQ(ParseTraceContext(kSampled, std::string(512, 'a'))->state.size(), 512U);
  EXPECT_EQ(ParseTraceContext(kSampled, std::string(513, 'a'))->state, "");
}

TEST(TraceContext, NewIdsDiffer) {
  std::set<SpanId> spans;
  std::set<TraceId> traces;
  for (int i = 0; i < 1000; ++i) {
    spans.insert(NewSpanId());
    traces.insert(NewTraceId());
  }
  EXPECT_EQ(spans.size(), 1000U);
  EXPECT_EQ(traces.size(), 1000U);
}

}  // namespace
}  // namespace penstock::router
