#include "router/stream/volatile_lines.h"

#include <gtest/gtest.h>

namespace penstock::router {
namespace {

TEST(VolatileLines, AreDroppedFromSystemMessages) {
  EXPECT_EQ(WithoutVolatileLines(
                R"([{"role":"system","content":"x-anthropic-billing-header: cch=1;\nYou help.\n)"
                R"( Today's date is 2026-11-27.\nThe current date: 27\nBe kind."},)"
                R"({"role":"user","content":"Today's date is?"}])"),
            R"([{"role":"system","content":"You help.\nBe kind."},)"
            R"({"role":"user","content":"Today's date is?"}])");
  EXPECT_EQ(WithoutVolatileLines(
                R"([{"role":"developer","content":[{"type":"text","text":"Current Date: 1"}]}])"),
            R"([{"role":"developer","content":[{"type":"text","text":""}]}])");
}

// Byte for byte, as templates print it.
TEST(VolatileLines, OtherMessagesStayAsTheyAre) {
  for (const std::string messages :
       {R"([ {"role" : "system", "content":"What is today's date?\n"}])",
        R"([{"role":"user","content":"Current date: 1"}])", R"([{"role":"system"}])", "nothing",
        "[1, {}]", "{}"}) {
    EXPECT_EQ(WithoutVolatileLines(messages), messages);
  }
}

}  // namespace
}  // namespace penstock::router
