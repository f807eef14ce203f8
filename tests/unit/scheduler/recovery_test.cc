// Requests whose group is lost: they continue with their output, or fail with an error that says
// why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Duration kTimeout{1000};

class Recovery : public ::testing::Test {
 protected:
  Recovery() { Make(kTimeout); }

  void Make(Duration timeout) {
    Config config;
    config.recovery_timeout = timeout;
    core_ = std::make_unique<Scheduler>(config);
  }

  Outputs Apply(decltype(Input::what) what) {
    now_ += Duration(1);
    Outputs out;
    core_->Apply({now_, std::move(what)}, out);
    Note(out);
    return out;
  }
  void Note(const Outputs& out) {
    for (const PlanOut& plan : out.plans) {
      results_[plan.group].push_back(shards_.at(plan.group).Execute(plan.plan));
    }
    for (const Event& event : out.events) {
      if (const auto* tokens = std::get_if<Tokens>(&event.what)) {
        std::vector<TokenId>& heard = heard_[event.request.value()];
        EXPECT_EQ(tokens->first_index, heard.size()) << "no token twice, none missing";
        for (const SampledToken& token : tokens->tokens) heard.push_back(token.token);
      } else if (const auto* failed = std::get_if<Failed>(&event.what)) {
        failed_[event.request.value()] = *failed;
      } else if (std::holds_alternative<Finished>(event.what)) {
        ++finished_;
      }
    }
  }

  void Up(std::uint32_t group, std::uint64_t arithmetic_class = 1) {
    const GroupId id(group);
    epochs_[id] = Epoch(epochs_[id].value() + 1);
    shards_.insert_or_assign(id, sim::SimGroup(Harness::Capacity(), {}));
    results_[id].clear();
    Apply(GroupUp{id, epochs_[id], Harness::Capacity(), {}, arithmetic_class});
  }
  Outputs Lose(std::uint32_t group, bool in_order = false) {
    const GroupId id(group);
    results_[id].clear();
    return Apply(GroupLost{id, epochs_[id], "rank 1 died", in_order});
  }
  void Arrive(std::uint64_t id, std::uint32_t length) { Apply(Harness::Request(id, 4, length)); }
  // Results of all groups, at most `most` of each.
  void Run(int most = 1000) {
    for (int i = 0; i < most; ++i) {
      for (auto& [id, results] : results_) {
        if (results.empty()) continue;
        StepResult result = std::move(results.front());
        results.pop_front();
        Apply(StepDone{id, std::move(result)});
      }
    }
  }
  static std::vector<TokenId> Alone(std::uint64_t id, std::uint32_t length) {
    return sim::SimGroupOptions{}.tokens.Output(Harness::Request(id, 4, length).prompt, length);
  }
  std::uint32_t running(std::uint32_t group) const {
    return core_->InspectGroup(GroupId(group)).running;
  }

  std::unique_ptr<Scheduler> core_;
  std::map<GroupId, sim::SimGroup> shards_;
  std::map<GroupId, std::deque<StepResult>> results_;
  std::map<GroupId, Epoch> epochs_;
  std::map<std::uint64_t, std::vector<TokenId>> heard_;
  std::map<std::uint64_t, Failed> failed_;
  std::size_t finished_ = 0;
  Time now_{};
};

TEST_F(Recovery, ARunningRequestContinuesOnAnotherGroup) {
  Up(0);
  Up(1);
  for (std::uint64_t id = 1; id <= 4; ++id) Arrive(id, 20);
  Run(5);
  ASSERT_EQ(running(0), 2u);
  const Outputs out = Lose(0);
  EXPECT_THAT(All(out, DecisionKind::kLost), SizeIs(2));
  Run();
  EXPECT_EQ(finished_, 4u);
  for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(heard_[id], Alone(id, 20)) << id;
}

TEST_F(Recovery, ARunningRequestContinuesOnItsGroupOnceThatIsBack) {
  Up(0);
  Arrive(1, 20);
  Run(5);
  Lose(0);
  EXPECT_EQ(core_->Inspect().waiting, 1u);
  Up(0);
  Run();
  EXPECT_EQ(heard_[1], Alone(1, 20));
  EXPECT_EQ(finished_, 1u);
}

TEST_F(Recovery, WithoutAGroupItEndsInTimeWithAnErrorThatSaysSo) {
  Up(0);
  Arrive(1, 20);
  Run(3);
  EXPECT_EQ(core_->NextDeadline(), std::nullopt);
  Lose(0);
  ASSERT_EQ(core_->NextDeadline(), now_ + kTimeout);
  now_ += kTimeout - Duration(2);
  Apply(Tick{});
  EXPECT_THAT(failed_, IsEmpty());
  Apply(Tick{});
  ASSERT_THAT(failed_, SizeIs(1));
  EXPECT_EQ(failed_[1].kind, FailureKind::kNoGroup);
  EXPECT_THAT(failed_[1].message, HasSubstr("--recovery-timeout"));
  EXPECT_EQ(core_->NextDeadline(), std::nullopt);
}

TEST_F(Recovery, OutputContinuesOnlyWhereItsBitsAreComputed) {
  Up(0, 1);
  Up(1, 2);
  Arrive(1, 20);
  Run(5);
  const std::uint32_t own = running(0) == 1 ? 0 : 1;
  Lose(own);
  Run(3);
  EXPECT_EQ(core_->Inspect().waiting, 1u) << "the other group computes other bits";
  Arrive(2, 20);
  EXPECT_EQ(running(1 - own), 1u) << "it stops no other request";
  Up(own, own + 1);
  Run();
  EXPECT_EQ(heard_[1], Alone(1, 20));
  EXPECT_EQ(finished_, 2u);
}

TEST_F(Recovery, OfRequestsPresentAtTwoLossesOnlyTheOneThatIsAloneAtTheThirdIsRefused) {
  Up(0);
  for (std::uint64_t id = 1; id <= 3; ++id) Arrive(id, 20);
  for (int loss = 0; loss < 2; ++loss) {
    Run(4);
    ASSERT_EQ(running(0), 3u);
    Lose(0);
    Up(0);
  }
  Arrive(4, 20);
  EXPECT_EQ(running(0), 1u) << "suspects run one at a time";
  Lose(0);
  ASSERT_THAT(failed_, SizeIs(1));
  EXPECT_EQ(failed_[1].kind, FailureKind::kSuspect);
  EXPECT_THAT(failed_[1].message, HasSubstr("lost 3 times"));
  Up(0);
  Run();
  EXPECT_EQ(finished_, 3u);
  for (std::uint64_t id = 2; id <= 4; ++id) EXPECT_EQ(heard_[id], Alone(id, 20)) << id;
}

TEST_F(Recovery, NoRequestIsBlamedForAStopInOrder) {
  Up(0);
  Arrive(1, 40);
  Arrive(2, 40);
  for (int loss = 0; loss < 4; ++loss) {
    Run(4);
    ASSERT_EQ(running(0), 2u);
    Lose(0, true);
    Up(0);
  }
  Run();
  EXPECT_EQ(finished_, 2u);
}

TEST_F(Recovery, AStopStringFoundInTheMeantimeEndsTheRequest) {
  Up(0);
  Arrive(1, 20);
  Arrive(2, 20);
  Run(6);
  Lose(0);
  const auto heard = static_cast<std::uint32_t>(heard_[1].size());
  ASSERT_GT(heard, 1u);
  Apply(FinishAt{RequestId(1), heard - 1});
  Apply(FinishAt{RequestId(2), heard + 2});
  EXPECT_EQ(finished_, 1u);
  Up(0);
  Run();
  EXPECT_EQ(finished_, 2u);
  EXPECT_EQ(heard_[2].size(), heard + 2);
}

TEST_F(Recovery, WithoutATimeoutItFailsWithItsGroup) {
  Make(Duration(0));
  Up(0);
  Arrive(1, 20);
  Run(5);
  Lose(0);
  ASSERT_THAT(failed_, SizeIs(1));
  EXPECT_EQ(failed_[1].kind, FailureKind::kGroupLost);
}

}  // namespace
}  // namespace penstock::scheduler
