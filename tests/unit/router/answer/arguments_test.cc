#include "router/answer/arguments.h"

#include <gtest/gtest.h>

namespace penstock::router::answer {
namespace {

TEST(ArgumentsTest, AnObjectStaysAsTheModelWroteIt) {
  EXPECT_EQ(ArgumentsObject("{\"a\": 1.0}"), "{\"a\": 1.0}");
  EXPECT_EQ(ArgumentsObject(""), "{}");
}

TEST(ArgumentsTest, OtherTextBecomesOneMember) {
  EXPECT_EQ(ArgumentsObject("{\"a\": \"b"), R"({"INVALID_JSON":"{\"a\": \"b"})");
  EXPECT_EQ(ArgumentsObject("[1]"), R"({"INVALID_JSON":"[1]"})");
  EXPECT_EQ(ArgumentsObject("{} and more"), R"({"INVALID_JSON":"{} and more"})");
}

}  // namespace
}  // namespace penstock::router::answer
