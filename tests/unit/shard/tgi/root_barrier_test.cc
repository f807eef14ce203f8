#include "shard/tgi/root_barrier.h"

#include <gmock/gmock.h>

#include <future>
#include <memory>

#include "common/status.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

class RootBarrierTest : public testing::Test {
 protected:
  using Answer = std::future<RankVerdict>;

  Answer Arrive(std::uint32_t rank, const std::string& call, const std::string& lost = "",
                Duration timeout = std::chrono::seconds(20), std::uint64_t value = 0,
                const std::string& detail = "") {
    auto promise = std::make_shared<std::promise<RankVerdict>>();
    Answer answer = promise->get_future();
    barrier_.Arrive({rank, call, value, detail, lost, SteadyNow() + timeout},
                    [promise, this, call, rank](const RankVerdict& verdict) {
                      if (verdict.status.ok()) order_.push_back(std::to_string(rank) + call);
                      promise->set_value(verdict);
                    });
    return answer;
  }
  static bool Waits(Answer& answer) {
    return answer.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  }
  std::string Group(const std::string& lost0 = "", const std::string& lost1 = "") {
    Answer a = Arrive(0, "x", lost0);
    Answer b = Arrive(1, "x", lost1);
    const std::string group = a.get().group;
    EXPECT_EQ(b.get().group, group);
    return group;
  }

  std::vector<std::string> order_;  // verdicts come under the lock of the barrier
  RootBarrier barrier_{2, "test"};
};

TEST_F(RootBarrierTest, ACallRunsWhenAllRanksHaveIt) {
  Answer a = Arrive(0, "x");
  EXPECT_TRUE(Waits(a));
  Answer b = Arrive(1, "x");
  EXPECT_TRUE(a.get().status.ok());
  EXPECT_TRUE(b.get().status.ok());
}

TEST_F(RootBarrierTest, EveryRankRunsOverlappingCallsInTheSameOrder) {
  Answer a = Arrive(0, "decode");
  Answer b = Arrive(0, "health");
  Answer c = Arrive(1, "health");
  Answer d = Arrive(1, "decode");
  EXPECT_THAT(order_, testing::ElementsAre("0health", "1health", "0decode", "1decode"));
}

TEST_F(RootBarrierTest, ACallThatComesTwiceRunsTwice) {
  Answer a = Arrive(0, "x");
  Answer b = Arrive(0, "x");
  Answer c = Arrive(1, "x");
  EXPECT_TRUE(a.get().status.ok());
  EXPECT_TRUE(Waits(b));
  Answer d = Arrive(1, "x");
  EXPECT_TRUE(b.get().status.ok());
}

TEST_F(RootBarrierTest, ACallOfOneRankExpiresAtItsDeadline) {
  Answer a = Arrive(0, "x", "", std::chrono::milliseconds(5));
  const RankVerdict verdict = a.get();
  EXPECT_TRUE(absl::IsDeadlineExceeded(verdict.status));
  EXPECT_THAT(Message(verdict.status), HasSubstr("came to rank 0, not to rank 1 of 2"));
  Answer late = Arrive(1, "x");
  EXPECT_TRUE(Waits(late));
  Answer again = Arrive(0, "x");
  EXPECT_TRUE(late.get().status.ok());
  EXPECT_TRUE(again.get().status.ok());
}

TEST_F(RootBarrierTest, ReturnsTheLeastValueAndComparesDetails) {
  Answer a = Arrive(0, "x", "", std::chrono::seconds(20), 7, "one");
  Answer b = Arrive(1, "x", "", std::chrono::seconds(20), 5, "one");
  EXPECT_EQ(a.get().least, 5u);
  Answer c = Arrive(0, "x", "", std::chrono::seconds(20), 7, "one");
  Answer d = Arrive(1, "x", "", std::chrono::seconds(20), 5, "two");
  EXPECT_TRUE(absl::IsFailedPrecondition(c.get().status));
  EXPECT_THAT(Message(d.get().status), HasSubstr("rank 1 has \"two\", rank 0 has \"one\""));
}

TEST_F(RootBarrierTest, AGroupLastsUntilARankHasLostIt) {
  const std::string first = Group();
  EXPECT_EQ(Group(), first);
  const std::string second = Group("", first);
  EXPECT_NE(second, first);
  EXPECT_EQ(Group("", first), second);  // an old loss
  EXPECT_NE(Group(second, second), second);
}

TEST_F(RootBarrierTest, LeaveDropsTheCallsOfTheRankAndTheGroup) {
  const std::string first = Group("", "");
  Answer a = Arrive(1, "y");
  barrier_.Leave(1);
  Answer b = Arrive(0, "y");
  EXPECT_TRUE(Waits(b));
  Answer c = Arrive(1, "y", "something older");
  EXPECT_NE(c.get().group, first);
}

TEST_F(RootBarrierTest, StopAnswersAll) {
  Answer a = Arrive(0, "x");
  barrier_.Stop();
  EXPECT_TRUE(absl::IsCancelled(a.get().status));
  EXPECT_TRUE(absl::IsCancelled(Arrive(0, "x").get().status));
}

TEST(RootBarrierAlone, OneRankNeverWaits) {
  RootBarrier barrier(1, "test");
  RankVerdict seen;
  barrier.Arrive({0, "x", 9, "", "", Time{}}, [&](const RankVerdict& verdict) { seen = verdict; });
  EXPECT_TRUE(seen.status.ok());
  EXPECT_EQ(seen.least, 9u);
  EXPECT_FALSE(seen.group.empty());
}

}  // namespace
}  // namespace penstock::shard
