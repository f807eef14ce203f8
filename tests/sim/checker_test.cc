// Changes outputs of a correct core and expects the checker to report each change. The tests of
// planted bugs do the same with an incorrect core.
#include "sim/checker/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

using scheduler::Input;
using scheduler::Outputs;
using scheduler::Snapshot;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckerTest : public ::testing::Test {
 protected:
  // A core with one group and a plan for request 1 in flight.
  void SetUp() override {
    Apply(scheduler::GroupUp{GroupId(0), Epoch(1), {8, 4, 2, 32, 64, false}, {}});
    scheduler::Arrival arrival;
    arrival.request = RequestId(1);
    arrival.prompt = {7, 8, 9};
    arrival.max_new_tokens = 2;
    Apply(arrival);
    ASSERT_THAT(checker_.findings().lines(), IsEmpty());
  }

  void Apply(decltype(Input::what) what) {
    input_ = {Time(Duration(++now_)), std::move(what)};
    out_.Clear();
    core_.Apply(input_, out_);
    checker_.Check(input_, out_, core_.Inspect());
  }
  // Applies the result of step 1 to the core, before the checker sees the outputs.
  void Compute() {
    StepResult result;
    result.epoch = Epoch(1);
    result.step = StepId(1);
    result.sequences = {{SlotId(0), SequenceId(1), {{5}}, 3, ShardFinish::kNone, "", {}}};
    input_ = {Time(Duration(++now_)), scheduler::StepDone{GroupId(0), result}};
    out_.Clear();
    core_.Apply(input_, out_);
  }
  // The result of step 1 makes room for a plan that starts request 2.
  void ArriveAndCompute() {
    scheduler::Arrival arrival;
    arrival.request = RequestId(2);
    arrival.prompt = {7, 8, 9};
    arrival.max_new_tokens = 2;
    Apply(arrival);
    Compute();
  }
  std::string First() {
    checker_.Check(input_, out_, core_.Inspect());
    return checker_.findings().empty() ? "" : checker_.findings().lines().front();
  }

  scheduler::Scheduler core_{scheduler::Config{}};
  Checker checker_{scheduler::Config{}};
  Input input_;
  Outputs out_;
  std::int64_t now_ = 0;
};

TEST_F(CheckerTest, CorrectCoreHasNoFindings) {
  Compute();
  EXPECT_EQ(First(), "");
}

TEST_F(CheckerTest, ReportsALostToken) {
  Compute();
  std::erase_if(out_.events, [](const auto& event) {
    return std::holds_alternative<scheduler::Tokens>(event.what);
  });
  EXPECT_THAT(First(), HasSubstr("G3: request 1 must hear tokens from 0: 5"));
}

TEST_F(CheckerTest, ReportsASecondEnd) {
  Apply(scheduler::Cancel{RequestId(1)});
  ASSERT_THAT(checker_.findings().lines(), IsEmpty());
  out_.AddEvent(RequestId(1), scheduler::Finished{});
  EXPECT_THAT(First(), HasSubstr("G2: request 1"));
}

TEST_F(CheckerTest, ReportsACounterThatDiffers) {
  Compute();
  Snapshot state = core_.Inspect();
  ++state.blocks_retiring;
  checker_.Check(input_, out_, state);
  ASSERT_FALSE(checker_.findings().empty());
  EXPECT_THAT(checker_.findings().lines().front(),
              HasSubstr("G8: blocks retiring: 0 by the plans"));
}

TEST_F(CheckerTest, ReportsAGaugeOfReasonsThatDiffers) {
  Compute();
  Snapshot state = core_.Inspect();
  ++state.waiting_for[static_cast<std::size_t>(Budget::kBlocks)];
  checker_.Check(input_, out_, state);
  ASSERT_FALSE(checker_.findings().empty());
  EXPECT_THAT(checker_.findings().lines().front(),
              HasSubstr("G2: requests waiting: 0, of all reasons 1"));
}

TEST_F(CheckerTest, ReportsAnEndWithoutItsDecision) {
  input_ = {Time(Duration(++now_)), scheduler::Cancel{RequestId(1)}};
  out_.Clear();
  core_.Apply(input_, out_);
  std::erase_if(out_.decisions,
                [](const Decision& decision) { return decision.kind == DecisionKind::kFinished; });
  EXPECT_THAT(First(), HasSubstr("requests finished: 1 by the events, 0 by the decisions"));
}

TEST_F(CheckerTest, ReportsAStartWithOtherLogprobsAndOtherCounts) {
  ArriveAndCompute();
  ASSERT_EQ(out_.plans.size(), 1u);
  ASSERT_EQ(out_.plans[0].plan.starts.size(), 1u);
  out_.plans[0].plan.starts[0].logprobs.top_n = 3;
  ++out_.steps[0].blocks_used;
  EXPECT_THAT(First(), HasSubstr("request 2 starts with another logprobs"));
  EXPECT_THAT(checker_.findings().lines(),
              Contains(HasSubstr("StepInfo has other numbers of blocks")));
}

TEST_F(CheckerTest, ReportsAnotherPredictionThanThatOfTheModel) {
  ArriveAndCompute();
  ASSERT_EQ(out_.steps.size(), 1u);
  out_.steps[0].predicted = Duration(1);
  EXPECT_EQ(First(), "model: StepInfo.predicted: 0 by the model, 1 by the core");
}

TEST_F(CheckerTest, ReportsADecisionThatTheModelDoesNotMake) {
  Compute();
  out_.decisions.push_back(Decision{});
  out_.decisions.back().kind = DecisionKind::kSplit;
  out_.decisions.back().request = RequestId(1);
  EXPECT_THAT(First(), HasSubstr("model: expects no further decision, the core says"));
}

TEST_F(CheckerTest, ReportsARequestThatNeverEnds) {
  checker_.CheckEnd(core_.Inspect());
  EXPECT_THAT(checker_.findings().lines().front(), HasSubstr("G2: request 1 never ends"));
}

}  // namespace
}  // namespace penstock::sim
