#include "router/dispatch/cached_prompts.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace penstock::router {
namespace {

using Kind = scheduler::PinChange::Kind;

const Time kNow{std::chrono::seconds(1)};

class CachedPromptListTest : public ::testing::Test {
 protected:
  void SetUp() override {
    list_.Take(Change(Kind::kKept, 1), {"a", "one"}, kNow);
    list_.Take(Change(Kind::kKept, 2), {"a", "two"}, kNow);
    list_.Take(Change(Kind::kKept, 3), {"b", "three"}, kNow);
  }

  static scheduler::PinChange Change(Kind kind, std::uint64_t made_by) {
    return {GroupId(0), kind, RequestId(made_by), RequestId(made_by), 32, 2};
  }

  CachedPromptList list_;
};

TEST_F(CachedPromptListTest, AForgottenPromptIsGoneAtOnce) {
  EXPECT_EQ(list_.Forget("a", 1), 1U);
  EXPECT_EQ(list_.Forget("a", 1), 0U);
  ASSERT_EQ(list_.List("a").size(), 1U);
  EXPECT_EQ(list_.List("a")[0].text, "two");
  EXPECT_EQ(list_.Forget("a", std::nullopt), 1U);
  EXPECT_EQ(list_.List("a").size(), 0U);
  EXPECT_EQ(list_.List("b").size(), 1U);
}

TEST_F(CachedPromptListTest, ATextThatIsCutEndsWithAnEllipsis) {
  list_.Take(Change(Kind::kKept, 4), {"c", std::string(80, 'x')}, kNow);
  EXPECT_EQ(list_.List("c")[0].text, std::string(80, 'x'));
  list_.Take(Change(Kind::kKept, 5), {"d", std::string(79, 'x') + "\u00fc"}, kNow);
  EXPECT_EQ(list_.List("d")[0].text, std::string(79, 'x') + "...");
}

TEST_F(CachedPromptListTest, ATenantCannotForgetAnothersPrompt) {
  EXPECT_EQ(list_.Forget("a", 3), 0U);
  EXPECT_EQ(list_.List("a").size(), 2U);
  EXPECT_EQ(list_.List("b").size(), 1U);
}

TEST_F(CachedPromptListTest, ALateReportOfUseDoesNotRestoreAForgottenPrompt) {
  list_.Forget("a", 1);
  list_.Take(Change(Kind::kUsed, 1), {}, kNow);
  list_.Take(Change(Kind::kDropped, 1), {}, kNow);
  EXPECT_EQ(list_.List("a").size(), 1U);
  EXPECT_EQ(list_.List("b").size(), 1U);
}

}  // namespace
}  // namespace penstock::router
