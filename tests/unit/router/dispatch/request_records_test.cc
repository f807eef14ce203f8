#include "router/dispatch/request_records.h"

#include <gtest/gtest.h>

namespace penstock::router {
namespace {

using scheduler::Event;

Decision MakeDecision(std::uint64_t request, DecisionKind kind) {
  Decision decision;
  decision.request = RequestId(request);
  decision.kind = kind;
  return decision;
}

TEST(RequestRecords, ARequestIsFoundByBothOfItsNames) {
  RequestRecords records;
  records.Add(RequestId(7), "", "abc", Time(Duration(5)));
  EXPECT_EQ(records.Find("abc", "")->request, RequestId(7));
  EXPECT_EQ(records.Find("7", "")->client_id, "abc");
  EXPECT_TRUE(absl::IsNotFound(records.Find("8", "").status()));
  EXPECT_TRUE(absl::IsNotFound(records.Find("7x", "").status()));
  EXPECT_TRUE(absl::IsNotFound(records.Find("", "").status()));
}

TEST(RequestRecords, TheStateFollowsTheEvents) {
  RequestRecords records;
  const RequestId id(1);
  records.Add(id, "", "a", Time());
  EXPECT_EQ(records.Find("a", "")->state, "preparing");
  records.SetPromptTokens(id, 9);
  records.Take({}, std::vector{MakeDecision(1, DecisionKind::kQueued)});
  EXPECT_EQ(records.Find("a", "")->state, "queued");
  scheduler::Tokens tokens;
  tokens.tokens.resize(3);
  records.Take(std::vector{Event{id, scheduler::Started{}}, Event{id, tokens}}, {});
  EXPECT_EQ(records.Find("a", "")->state, "running");
  EXPECT_EQ(records.Find("a", "")->generated_tokens, 3u);
  EXPECT_EQ(records.Find("a", "")->prompt_tokens, 9u);
  records.Take(std::vector{Event{id, scheduler::Finished{FinishReason::kStopString, 2}}}, {});
  EXPECT_EQ(records.Find("a", "")->state, "finished");
  EXPECT_EQ(records.Find("a", "")->generated_tokens, 2u) << "a stop string cuts";
}

TEST(RequestRecords, OnlyTheNewestRequestsAreKept) {
  RequestRecords records(2);
  records.Add(RequestId(1), "", "same", Time());
  records.Add(RequestId(2), "", "same", Time());
  records.Add(RequestId(3), "", "c", Time());
  EXPECT_FALSE(records.Find("1", "").ok());
  EXPECT_EQ(records.Find("same", "")->request, RequestId(2)) << "the newest of that name";
  records.Take(std::vector{Event{RequestId(1), scheduler::Started{}}}, {});  // forgotten: ignored
}

TEST(RequestRecords, ATenantFindsItsOwn) {
  RequestRecords records;
  records.Add(RequestId(1), "alice", "same", Time());
  records.Add(RequestId(2), "bob", "same", Time());
  EXPECT_EQ(records.Find("same", "alice")->request, RequestId(1));
  EXPECT_EQ(records.Find("same", "bob")->request, RequestId(2));
  EXPECT_FALSE(records.Find("2", "alice").ok());
  EXPECT_FALSE(records.Find("same", "").ok());
}

TEST(RequestRecords, TheFirstAndTheNewestDecisionsAreKept) {
  RequestRecords records(4, 4);
  records.Add(RequestId(1), "", "a", Time());
  for (std::uint64_t i = 0; i < 10; ++i) {
    Decision decision = MakeDecision(1, DecisionKind::kDeferred);
    decision.needed = i;
    records.Take({}, std::vector{decision});
  }
  const auto record = records.Find("a", "");
  ASSERT_TRUE(record.ok());
  std::vector<std::uint64_t> kept;
  for (const Decision& decision : record->decisions) kept.push_back(decision.needed);
  EXPECT_EQ(kept, (std::vector<std::uint64_t>{0, 1, 8, 9}));
}

// The record of request 1. It names request 2 of the same tenant, request 3 of bob and request 9,
// which has no record any more.
RequestRecord RecordThatNamesOthers(RequestRecords& records, const std::string& tenant) {
  records.Add(RequestId(1), tenant, "text 1", Time());
  records.Add(RequestId(2), tenant, "text 2", Time());
  records.Add(RequestId(3), "bob", "text 3", Time());
  RequestRecord record = *records.Of(RequestId(1));
  LedgerView ledger;
  ledger.behind = RequestId(3);
  for (const std::uint64_t behind : {2, 3, 9}) {
    Decision decision = MakeDecision(1, DecisionKind::kDeferred);
    decision.behind = RequestId(behind);
    record.decisions.push_back(decision);
    LedgerSpan span;
    span.behind = RequestId(behind);
    span.beside = {RequestId(2), RequestId(3), RequestId(9)};
    span.beside_left_out = 5;
    ledger.spans.push_back(span);
  }
  record.ledger = std::move(ledger);
  return record;
}

TEST(RequestRecords, RequestsOfOtherTenantsAreHidden) {
  RequestRecords records;
  RequestRecord record = RecordThatNamesOthers(records, "alice");
  records.HideOthers(record);
  EXPECT_EQ(record.decisions[0].behind, RequestId(2)) << "the same tenant's";
  EXPECT_FALSE(record.decisions[1].behind) << "bob's";
  EXPECT_FALSE(record.decisions[2].behind) << "its tenant is unknown";
  EXPECT_FALSE(record.ledger->behind);
  EXPECT_TRUE(record.ledger->behind_other);
  const std::vector<LedgerSpan>& spans = record.ledger->spans;
  EXPECT_EQ(spans[0].behind, RequestId(2));
  EXPECT_FALSE(spans[0].behind_other);
  for (const std::size_t i : {1, 2}) {
    EXPECT_FALSE(spans[i].behind);
    EXPECT_TRUE(spans[i].behind_other) << "the wait is shown, the request is not";
  }
  EXPECT_EQ(spans[0].beside, std::vector{RequestId(2)});
  EXPECT_EQ(spans[0].beside_left_out, 7u) << "hidden requests are counted";
}

TEST(RequestRecords, RequestsOfTheSameTenantAreShown) {
  RequestRecords records;
  RequestRecord record = RecordThatNamesOthers(records, "alice");
  record.ledger->behind = RequestId(2);
  records.HideOthers(record);
  EXPECT_EQ(record.ledger->behind, RequestId(2));
  EXPECT_FALSE(record.ledger->behind_other);
}

// Without keys all requests have the empty tenant.
TEST(RequestRecords, WithoutKeysRequestsWithoutARecordAreShown) {
  RequestRecords records;
  RequestRecord record = RecordThatNamesOthers(records, "");
  records.HideOthers(record);
  EXPECT_EQ(record.decisions[2].behind, RequestId(9));
  EXPECT_EQ(record.ledger->spans[0].beside, (std::vector{RequestId(2), RequestId(9)}));
}

TEST(RequestRecords, DecisionsAreHiddenWithoutALedger) {
  RequestRecords records;
  RequestRecord record = RecordThatNamesOthers(records, "alice");
  record.ledger.reset();
  records.HideOthers(record);
  EXPECT_FALSE(record.ledger);
  EXPECT_FALSE(record.decisions[1].behind);
}

}  // namespace
}  // namespace penstock::router
