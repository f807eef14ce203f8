// Turns of tenants in the queue (G11).
#include "scheduler/order/tenant_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/order/request_queue.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;

constexpr GroupId kTurnGroup{0};

class Turns : public ::testing::Test {
 protected:
  WaitingRequest& Push(std::uint64_t id, const std::string& account, std::uint32_t weight = 1,
                       std::int32_t priority = 0) {
    Arrival arrival;
    arrival.request = RequestId(id);
    arrival.max_new_tokens = 100;
    arrival.account = account;
    arrival.weight = weight;
    arrival.priority = priority;
    return queue_.Push(arrival);
  }
  // Admits the front and charges its account.
  std::uint64_t Admit(std::uint64_t work) {
    const Work admitted = queue_.Admit(*queue_.Front(kTurnGroup));
    admitted.account->Charge(work);
    return admitted.request.request.value();
  }

  RequestQueue queue_{100, [] { return MakeKeyOrder(Order::kPriority); }, {100, 3}};
};

TEST_F(Turns, TheTenantThatWasServedLeastIsNext) {
  for (std::uint64_t id = 1; id <= 4; ++id) Push(id, "many");
  Push(5, "few");
  Push(6, "few");
  EXPECT_EQ(Admit(10), 1u) << "equal accounts: the earlier arrival";
  EXPECT_EQ(Admit(4), 5u);
  EXPECT_EQ(Admit(8), 6u) << "4 is less than 10";
  EXPECT_EQ(Admit(1), 2u);
}

TEST_F(Turns, AWeightOfThreeGetsThreeOfFourTurns) {
  for (std::uint64_t id = 1; id <= 12; ++id) Push(id, "heavy", 3);
  for (std::uint64_t id = 101; id <= 112; ++id) Push(id, "light", 1);
  int heavy = 0;
  for (int i = 0; i < 12; ++i) heavy += Admit(30) <= 12;
  EXPECT_EQ(heavy, 9);
}

TEST_F(Turns, AnAbsentTenantSavesNoCredit) {
  Push(1, "absent");
  Admit(1);
  for (std::uint64_t id = 2; id <= 6; ++id) Push(id, "present");
  for (int i = 0; i < 3; ++i) Admit(100);
  Push(7, "absent");
  Push(8, "absent");
  EXPECT_EQ(Admit(100), 5u) << "its counter is that of the turn, so the earlier arrival is next";
  EXPECT_EQ(Admit(100), 7u);
  EXPECT_EQ(Admit(100), 6u) << "no turns are made up for";
}

TEST_F(Turns, AFirstRequestBeginsWhereTheLastTenantLeft) {
  Push(1, "a");
  Admit(1000);
  Push(2, "b");
  Push(3, "a");
  Push(4, "b");
  EXPECT_EQ(Admit(10), 2u);
  EXPECT_EQ(Admit(10), 3u);
}

TEST_F(Turns, PrioritiesCountWithinATenantOnly) {
  Push(1, "a", 1, 0);
  Push(2, "a", 1, 5);
  Push(3, "b", 1, 9);
  EXPECT_EQ(Admit(10), 2u);
  EXPECT_EQ(Admit(10), 3u);
  EXPECT_EQ(Admit(10), 1u);
}

TEST_F(Turns, ATenantWhoseRequestsDoNotFitIsPassedOver) {
  Push(1, "a");
  Push(2, "b");
  const auto fits = [](const WaitingRequest& request) { return request.request.account == "b"; };
  EXPECT_EQ(queue_.Front(kTurnGroup, fits)->request.request, RequestId(2));
  EXPECT_EQ(queue_.Front(kTurnGroup, [](const WaitingRequest&) { return false; }), nullptr);
}

TEST_F(Turns, TheFirstOfATenantWaitsForTheFront) {
  WaitingRequest& front = Push(1, "a");
  WaitingRequest& other = Push(2, "b");
  WaitingRequest& later = Push(3, "b");
  EXPECT_EQ(queue_.Before(other, front), &front);
  EXPECT_EQ(queue_.Before(later, front), &other);
  EXPECT_EQ(queue_.After(front), nullptr);
  std::vector<RequestId> firsts;
  queue_.AddFirsts(firsts);
  EXPECT_THAT(firsts, ElementsAre(RequestId(1), RequestId(2)));
}

TEST_F(Turns, ARequestIsDueInItsTenantsTurn) {
  Push(1, "a", 1, 0);
  Push(2, "b", 1, 0);
  Push(3, "b", 1, 9);
  for (int step = 0; step < 3; ++step) queue_.CountStep();
  const auto due = [this](const std::string& fitting) {
    const WaitingRequest* found = queue_.Due([&](const WaitingRequest& request) {
      return fitting.find(request.request.account) != std::string::npos;
    });
    return found == nullptr ? 0 : found->request.request.value();
  };
  EXPECT_EQ(due("ab"), 1u);
  EXPECT_EQ(due("b"), 2u) << "a is passed over if nothing of it fits";
  EXPECT_EQ(Admit(10), 1u);
  EXPECT_EQ(due("ab"), 2u);
  EXPECT_EQ(Admit(10), 2u) << "before the one with more priority";
}

TEST_F(Turns, AYieldedRequestComesLastAmongEquallyServedTenants) {
  Push(1, "a");
  Work yielded = queue_.Admit(*queue_.Front(kTurnGroup));
  Push(2, "b");
  yielded.yielded = true;
  queue_.PushYielded(std::move(yielded));
  EXPECT_EQ(Admit(0), 2u);
  EXPECT_EQ(Admit(0), 1u);
}

}  // namespace
}  // namespace penstock::scheduler
