#include "router/dispatch/prefix_reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::router {
namespace {

using namespace std::chrono_literals;
using Kind = PrefixReason::Kind;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr std::uint32_t kBlock = 4;

class PrefixReasonTest : public ::testing::Test {
 protected:
  // A request that ran from `begin` to its end and read `cached` tokens from the cache.
  RequestId Run(const std::string& text, const std::string& tenant = "", std::uint32_t cached = 0,
                bool ends = true) {
    const RequestId id(++last_);
    const auto ids = tokenizer_->Encode(text, false).value();
    records_.Add(id, tenant, "client-" + std::to_string(last_), Time{});
    history_.Add(id, tenant, ids, false);
    const auto size = static_cast<std::uint32_t>(ids.size());
    Tell({id, scheduler::Started{size, cached}}, DecisionKind::kAdmitted);
    if (ends) Tell({id, scheduler::Finished{FinishReason::kLength, 1}}, DecisionKind::kFinished);
    return id;
  }

  std::optional<PrefixReason> Explain(RequestId id, bool admin = false) {
    return ExplainPrefix({history_, records_, *tokenizer_, kBlock}, *records_.Of(id), admin);
  }

  PromptHistory history_{8};

 private:
  void Tell(scheduler::Event event, DecisionKind kind) {
    now_ += 1s;
    Decision decision;
    decision.at = now_;
    decision.request = event.request;
    decision.kind = kind;
    records_.Take({&event, 1}, {&decision, 1});
  }

  static std::shared_ptr<const text::Tokenizer> Tiny() {
    const TempFolder folder;
    folder.Write("tokenizer.json", text::ByteLevelJson());
    return text::Tokenizer::Load(folder.path()).value();
  }

  const std::shared_ptr<const text::Tokenizer> tokenizer_ = Tiny();
  RequestRecords records_;
  std::uint64_t last_ = 0;
  Time now_{};
};

TEST_F(PrefixReasonTest, AVolatileLineIsNamed) {
  Run("Something quite different");
  const RequestId first = Run("You help.\nToday is 26 May.\nBe kind and brief.");
  const auto miss = Explain(Run("You help.\nToday is 27 May.\nBe kind and brief.", "", 16));
  ASSERT_TRUE(miss);
  EXPECT_EQ(miss->kind, Kind::kDifferent);
  EXPECT_EQ(miss->relative, first);
  EXPECT_EQ(miss->relative_client_id, "client-2");
  EXPECT_THAT(miss->before, EndsWith("Today is 2"));
  EXPECT_THAT(miss->here, StartsWith("7 May."));
  EXPECT_THAT(miss->there, StartsWith("6 May."));
}

TEST_F(PrefixReasonTest, NothingIsSaidOfAPromptThatReadAllItCould) {
  Run("abcdefghij");
  EXPECT_FALSE(Explain(Run("abcdefghij", "", 8)));
}

TEST_F(PrefixReasonTest, AShortPromptAndOneWithoutARelativeAreNamedSo) {
  EXPECT_EQ(Explain(Run("abcd"))->kind, Kind::kShort);
  EXPECT_EQ(Explain(Run("zyxwvuts"))->kind, Kind::kNoRelative);
}

// Seen when the first request ended, and gone when the second began.
TEST_F(PrefixReasonTest, AnEvictionLiesBetweenTwoTimes) {
  Run("abcdefghij");
  const auto miss = Explain(Run("abcdefghij"));
  ASSERT_TRUE(miss);
  EXPECT_EQ(miss->kind, Kind::kEvicted);
  EXPECT_EQ(miss->last_cached, Time{} + 2s);
  EXPECT_EQ(miss->missed, Time{} + 3s);
}

TEST_F(PrefixReasonTest, BlocksInUseAreNotEvicted) {
  Run("abcdefghij", "", 0, false);
  EXPECT_EQ(Explain(Run("abcdefghij"))->kind, Kind::kHeld);
}

TEST_F(PrefixReasonTest, AnotherTenantsPromptIsAnAdminsToSee) {
  const RequestId other = Run("abcdefghij", "b");
  const RequestId own = Run("abcdefghxy", "a");
  EXPECT_EQ(Explain(own)->kind, Kind::kNoRelative);
  const auto miss = Explain(own, true);
  EXPECT_EQ(miss->kind, Kind::kOtherTenant);
  EXPECT_EQ(miss->relative, other);
  EXPECT_EQ(miss->relative_tenant, "b");
}

TEST_F(PrefixReasonTest, OnlyTheNewestPromptsAreKept) {
  const RequestId first = Run("abcdefghij");
  for (int i = 0; i < 8; ++i) Run("abcdefghij");
  EXPECT_FALSE(Explain(first));
  PromptHistory small(8, 10);
  const std::vector<TokenId> ids = {1, 2, 3, 4, 5, 6};
  small.Add(RequestId(1), "", ids, false);
  small.Add(RequestId(2), "", ids, false);
  EXPECT_TRUE(small.UpTo(RequestId(1)).empty());
  EXPECT_EQ(small.UpTo(RequestId(2)).size(), 1u);
}

}  // namespace
}  // namespace penstock::router
