#include "router/dispatch/request_ledgers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "router/metrics/metrics.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;

constexpr GroupId kGroup{0};

Time At(int ms) { return Time{} + std::chrono::hours(1) + milliseconds(ms); }

class RequestLedgersTest : public testing::Test {
 protected:
  void Begin(std::uint64_t id, const std::string& tenant = "") {
    GenerationRequest request;
    request.tenant = tenant;
    request.client_id = "c" + std::to_string(id);
    request.arrived = At(0);
    request.read = At(2);
    ledgers_.Begin(RequestId(id), request, At(3));
  }

  void Decide(std::uint64_t id, DecisionKind kind, int ms, Budget budget = Budget::kNone,
              std::optional<RequestId> behind = std::nullopt) {
    scheduler::Outputs out;
    Decision decision;
    decision.at = At(ms);
    decision.request = RequestId(id);
    decision.kind = kind;
    decision.short_of = budget;
    decision.behind = behind;
    out.decisions.push_back(decision);
    ledgers_.Take({At(ms), scheduler::Cancel{}}, out);
  }

  void Start(std::uint64_t id, std::uint32_t slot, int ms) {
    Decide(id, DecisionKind::kAdmitted, ms);
    scheduler::Outputs out;
    scheduler::PlanOut& plan = out.plans.emplace_back();
    plan.group = kGroup;
    plan.plan.starts.emplace_back().slot = SlotId(slot);
    plan.requests.push_back(RequestId(id));
    ledgers_.Take({At(ms), scheduler::Cancel{}}, out);
  }

  // A step that took 8 ms and gave tokens to these slots.
  void Step(int ms, const std::vector<std::pair<std::uint32_t, bool>>& slots) {
    StepResult result;
    result.timings.forward = milliseconds(8);
    for (const auto& [slot, gave_token] : slots) {
      SequenceResult& sequence = result.sequences.emplace_back();
      sequence.slot = SlotId(slot);
      if (gave_token) sequence.tokens.emplace_back();
    }
    ledgers_.Take({At(ms), scheduler::StepDone{kGroup, std::move(result)}}, {});
  }

  Duration Total(std::uint64_t id, TimeKind kind) {
    return ledgers_.View(RequestId(id), At(1000))->totals[static_cast<std::size_t>(kind)];
  }

  Metrics metrics_;
  RequestLedgers ledgers_{metrics_, 2};
};

TEST_F(RequestLedgersTest, FollowsARequestToItsLastByte) {
  Begin(1);
  Decide(1, DecisionKind::kQueued, 4);
  Decide(1, DecisionKind::kDeferred, 5, Budget::kBlocks);
  Start(1, 3, 10);
  Step(20, {{3, true}});
  Step(29, {{3, true}});
  Decide(1, DecisionKind::kFinished, 29);
  ledgers_.End(RequestId(1), At(30));
  ledgers_.Close(RequestId(1), At(35));
  EXPECT_EQ(Total(1, TimeKind::kUpload), milliseconds(2));
  EXPECT_EQ(Total(1, QueueFor(Budget::kBlocks)), milliseconds(5));
  EXPECT_EQ(Total(1, TimeKind::kPrefill), milliseconds(8));
  EXPECT_EQ(Total(1, TimeKind::kDecode), milliseconds(8));
  EXPECT_EQ(Total(1, TimeKind::kSocket), milliseconds(5));
  EXPECT_EQ(ledgers_.View(RequestId(1), At(1000))->wall, milliseconds(35));
  const std::string text = metrics_.Render();
  EXPECT_NE(text.find("penstock_request_time_seconds_total{reason=\"socket\"} 0.005"),
            std::string::npos);
  StepReport report;
  ledgers_.Describe(report, At(40));
  EXPECT_EQ(report.last_hour[static_cast<std::size_t>(TimeKind::kSocket)], milliseconds(5));
}

TEST_F(RequestLedgersTest, DecodesBesideThePromptOfAnother) {
  Begin(1);
  Begin(2);
  Start(1, 0, 4);
  Step(12, {{0, true}});
  Start(2, 1, 12);
  Step(20, {{0, true}, {1, false}});
  EXPECT_EQ(Total(1, TimeKind::kSharedDecode), milliseconds(8));
  EXPECT_EQ(Total(2, TimeKind::kPrefill), milliseconds(8));
  const auto view = ledgers_.View(RequestId(2), At(20));
  EXPECT_EQ(view->spans.back().beside, std::vector{RequestId(1)});
  EXPECT_EQ(ledgers_.View(RequestId(1), At(20))->spans.back().beside, std::vector{RequestId(2)});
}

TEST_F(RequestLedgersTest, ListsTheQueueWithWhomEachWaitsFor) {
  Begin(1, "alice");
  Begin(2, "bob");
  Start(1, 0, 4);
  Decide(2, DecisionKind::kDeferred, 6, Budget::kBatchSize, RequestId(1));
  StepReport report;
  ledgers_.Describe(report, At(9));
  ASSERT_EQ(report.queue.size(), 1U);
  EXPECT_EQ(report.queue[0].client_id, "c2");
  EXPECT_EQ(report.queue[0].kind, QueueFor(Budget::kBatchSize));
  EXPECT_EQ(report.queue[0].behind_tenant, "alice");
  EXPECT_EQ(report.queue[0].since, At(6));
}

TEST_F(RequestLedgersTest, KeepsOpenOnesAndTheNewestThatEnded) {
  Begin(9);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    Begin(id);
    ledgers_.Close(RequestId(id), At(10));
  }
  EXPECT_TRUE(ledgers_.View(RequestId(9), At(10)));
  EXPECT_FALSE(ledgers_.View(RequestId(1), At(10)));
  EXPECT_TRUE(ledgers_.View(RequestId(2), At(10)));
}

}  // namespace
}  // namespace penstock::router
