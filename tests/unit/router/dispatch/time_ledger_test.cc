#include "router/dispatch/time_ledger.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace penstock::router {
namespace {

using std::chrono::milliseconds;

Time At(int ms) { return Time{} + milliseconds(ms); }

Duration Sum(const LedgerView& view) {
  return std::accumulate(view.totals.begin(), view.totals.end(), Duration{0});
}

Duration Total(const LedgerView& view, TimeKind kind) {
  return view.totals[static_cast<std::size_t>(kind)];
}

TimeLedger::Step StepAt(int ms, int computed, bool gave_token) {
  return {.at = At(ms), .computed = milliseconds(computed), .gave_token = gave_token};
}

// A running request, from 0 on.
TimeLedger Running() {
  TimeLedger ledger(At(0), TimeKind::kMailbox);
  ledger.Admit(At(0));
  return ledger;
}

TEST(TimeLedgerTest, EveryInstantIsOfOneKind) {
  TimeLedger ledger(At(0), TimeKind::kUpload);
  ledger.Enter(TimeKind::kParse, At(5));
  ledger.Enter(TimeKind::kMailbox, At(7));
  ledger.Enter(QueueFor(Budget::kBlocks), At(8), RequestId(3));
  ledger.Admit(At(50));
  ledger.Take(StepAt(70, 15, true));
  ledger.Take(StepAt(80, 8, true));
  ledger.Enter(TimeKind::kText, At(80));
  ledger.Enter(TimeKind::kSocket, At(81));
  ledger.Close(At(90));
  const LedgerView view = ledger.View(At(500));
  EXPECT_EQ(view.wall, milliseconds(90));
  EXPECT_EQ(Sum(view), view.wall);
  EXPECT_TRUE(view.closed);
  EXPECT_EQ(Total(view, TimeKind::kUpload), milliseconds(5));
  EXPECT_EQ(Total(view, TimeKind::kPrefill), milliseconds(15));
  EXPECT_EQ(Total(view, TimeKind::kDecode), milliseconds(8));
  EXPECT_EQ(Total(view, TimeKind::kBetweenSteps), milliseconds(7));
  EXPECT_EQ(Total(view, TimeKind::kSocket), milliseconds(9));
  EXPECT_EQ(view.most, QueueFor(Budget::kBlocks));
  EXPECT_EQ(view.behind, RequestId(3));
}

TEST(TimeLedgerTest, TimesThatRunBackwardsKeepTheSum) {
  TimeLedger ledger(At(10), TimeKind::kParse);
  ledger.Enter(TimeKind::kTextQueue, At(20));
  ledger.Enter(TimeKind::kMailbox, At(15));
  ledger.Admit(At(30));
  ledger.Take(StepAt(25, 100, true));
  ledger.Take(StepAt(35, 100, true));
  ledger.Close(At(33));
  const LedgerView view = ledger.View(At(33));
  EXPECT_EQ(view.wall, milliseconds(25));
  EXPECT_EQ(Sum(view), view.wall);
  EXPECT_EQ(Total(view, TimeKind::kTextQueue), Duration{0});
}

TEST(TimeLedgerTest, NothingCountsAfterTheEnd) {
  TimeLedger ledger(At(0), TimeKind::kParse);
  ledger.Close(At(10));
  ledger.Enter(TimeKind::kSocket, At(20));
  ledger.Admit(At(20));
  ledger.Take(StepAt(30, 5, true));
  ledger.Close(At(40));
  EXPECT_EQ(ledger.View(At(50)).wall, milliseconds(10));
  EXPECT_EQ(Sum(ledger.View(At(50))), milliseconds(10));
}

TEST(TimeLedgerTest, AnOpenLedgerIsShownUntilNow) {
  TimeLedger ledger(At(0), TimeKind::kParse);
  ledger.Enter(QueueFor(Budget::kOrder), At(4), RequestId(9));
  const LedgerView view = ledger.View(At(10));
  EXPECT_FALSE(view.closed);
  EXPECT_EQ(view.now, QueueFor(Budget::kOrder));
  EXPECT_EQ(Sum(view), milliseconds(10));
  ASSERT_EQ(view.spans.size(), 2U);
  EXPECT_EQ(view.spans[1].end, At(10));
}

TEST(TimeLedgerTest, WaitsInTheShardAreNotComputing) {
  TimeLedger ledger = Running();
  ledger.Take({.at = At(30), .queued = milliseconds(18), .computed = milliseconds(10)});
  const LedgerView view = ledger.View(At(30));
  EXPECT_EQ(Total(view, TimeKind::kShardQueue), milliseconds(18));
  EXPECT_EQ(Total(view, TimeKind::kPrefill), milliseconds(10));
  EXPECT_EQ(Total(view, TimeKind::kBetweenSteps), milliseconds(2));
}

TEST(TimeLedgerTest, ChunksShowWhoSharedTheStep) {
  TimeLedger ledger = Running();
  const std::array others{RequestId(2), RequestId(3)};
  ledger.Take({.at = At(10), .computed = milliseconds(9), .others = others, .other_count = 5});
  ledger.Take(StepAt(20, 9, true));
  const LedgerView view = ledger.View(At(20));
  ASSERT_EQ(view.spans.size(), 2U);
  EXPECT_EQ(view.spans[0].beside, (std::vector{RequestId(2), RequestId(3)}));
  EXPECT_EQ(view.spans[0].beside_left_out, 3U);
  EXPECT_EQ(view.spans[0].begin, At(1));
  EXPECT_TRUE(view.spans[1].beside.empty());
}

TEST(TimeLedgerTest, DecodesBesidePromptsAreNamed) {
  TimeLedger ledger = Running();
  ledger.Take(StepAt(10, 9, true));
  ledger.Take(StepAt(12, 2, true));
  TimeLedger::Step beside = StepAt(62, 50, true);
  beside.prompt_of = RequestId(8);
  ledger.Take(beside);
  beside.at = At(112);
  ledger.Take(beside);
  const LedgerView view = ledger.View(At(112));
  EXPECT_EQ(view.most, TimeKind::kSharedDecode);
  EXPECT_EQ(Total(view, TimeKind::kSharedDecode), milliseconds(100));
  ASSERT_EQ(view.spans.size(), 2U);
  EXPECT_EQ(view.spans[1].kind, TimeKind::kDecode);
  EXPECT_EQ(view.spans[1].steps, 3U);
  EXPECT_EQ(view.spans[1].beside, std::vector{RequestId(8)});
}

TEST(TimeLedgerTest, StepsWithoutATokenWaitForTheGrammar) {
  TimeLedger ledger = Running();
  ledger.Take(StepAt(10, 10, true));
  ledger.Take(StepAt(20, 10, false));
  EXPECT_EQ(Total(ledger.View(At(20)), TimeKind::kGrammarMask), milliseconds(10));
}

TEST(TimeLedgerTest, AfterAPreemptionThePromptIsRecomputed) {
  TimeLedger ledger = Running();
  ledger.Take(StepAt(10, 10, true));
  ledger.Preempt(At(12));
  ledger.Take(StepAt(15, 3, true));  // a step that was in flight
  ledger.Admit(At(30));
  ledger.Take(StepAt(40, 10, true));
  ledger.Take(StepAt(41, 1, true));
  const LedgerView view = ledger.View(At(41));
  EXPECT_EQ(Total(view, TimeKind::kPreempted), milliseconds(18));
  EXPECT_EQ(Total(view, TimeKind::kRecompute), milliseconds(10));
  EXPECT_EQ(Total(view, TimeKind::kDecode), milliseconds(1));
  EXPECT_EQ(Sum(view), view.wall);
}

TEST(TimeLedgerTest, SpansAreBoundedAndTheTotalsExact) {
  TimeLedger ledger(At(0), TimeKind::kParse);
  for (int i = 1; i <= 100; ++i) ledger.Enter(QueueFor(Budget::kOrder), At(i), RequestId(i));
  const LedgerView view = ledger.View(At(101));
  EXPECT_EQ(view.spans.size(), TimeLedger::kMostSpans);
  EXPECT_EQ(view.spans_left_out, 101 - TimeLedger::kMostSpans);
  EXPECT_EQ(view.spans.front().kind, TimeKind::kParse);
  EXPECT_EQ(view.spans.back().behind, RequestId(100));
  EXPECT_EQ(Sum(view), milliseconds(101));
}

TEST(TimeLedgerTest, NamesAreThoseOfTheBudgets) {
  EXPECT_EQ(TimeKindName(TimeKind::kSocket), "socket");
  for (std::size_t i = 1; i < kBudgets; ++i) {
    const auto budget = static_cast<Budget>(i);
    EXPECT_EQ(TimeKindName(QueueFor(budget)), "queue_" + std::string(BudgetName(budget)));
  }
}

}  // namespace
}  // namespace penstock::router
