// Steps in flight, on a device that finishes a step when the test lets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "shard/executor/model_executor.h"
#include "shard/parallel/local_communicator.h"
#include "tests/unit/shard/executor/fake_backend.h"
#include "tests/unit/shard/executor/plans.h"

namespace penstock::shard {
namespace {

using plans::Decode;
using plans::Decodes;
using plans::Start;
using plans::Tokens;
using plans::Whole;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kVocabulary = 50;
constexpr TokenId kEos = 40;

// Samples token t + 1 after token t, as FakeBackend does.
class FakeDeviceSampler final : public DeviceSampler {
 public:
  struct Step {
    std::vector<TokenId> tokens;  // as the device finds them
    std::vector<std::int32_t> newest;
    std::vector<std::uint32_t> positions;  // of the tokens in their outputs
    std::vector<std::vector<TokenId>> masked;
    std::vector<DeviceToken> sampled;
  };

  bool CanSample(std::span<const SampleRequest>) const override { return can_sample; }
  absl::Status Sample(std::uint32_t, std::span<const SampleRequest>,
                      std::span<DeviceToken>) override {
    return absl::InternalError("the fake samples only in steps that were begun");
  }
  absl::Status BeginStep(const RaggedBatch& batch, std::span<const std::int32_t> newest,
                         std::span<const SampleRequest> requests,
                         std::function<void()> ready) override {
    Step step;
    step.newest.assign(newest.begin(), newest.end());
    for (std::size_t row = 0; row < batch.tokens.size(); ++row) {
      const bool known = newest[row] < 0;
      step.tokens.push_back(known ? batch.tokens[row]
                                  : last_tokens_[static_cast<std::size_t>(newest[row])].token);
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const TokenId token = step.tokens[batch.logit_rows[i]];
      step.sampled.push_back({token == bad_token ? -1 : token + 1, -0.5f});
      step.positions.push_back(requests[i].position);
      step.masked.emplace_back(requests[i].masked.begin(), requests[i].masked.end());
    }
    last_tokens_ = step.sampled;
    begun.push_back(step);
    running.push_back(std::move(step));
    this->ready.push_back(std::move(ready));
    return absl::OkStatus();
  }
  absl::Status EndStep(std::span<DeviceToken> out) override {
    if (!end_status.ok()) return end_status;
    std::copy(running.front().sampled.begin(), running.front().sampled.end(), out.begin());
    running.pop_front();
    return absl::OkStatus();
  }

  bool can_sample = true;
  TokenId bad_token = -1;
  absl::Status end_status;
  std::vector<Step> begun;
  std::deque<Step> running;
  std::vector<std::function<void()>> ready;

 private:
  std::vector<DeviceToken> last_tokens_;
};

class StepsInFlightTest : public testing::Test {
 protected:
  StepsInFlightTest() : backend_(kVocabulary) {
    ExecutorOptions options;
    options.slots = 4;
    options.vocabulary = kVocabulary;
    options.eos_token_ids = {kEos};
    options.device_sampler = &device_;
    executor_ = std::make_unique<ModelExecutor>(options, backend_, local_);
  }

  bool Begin(const StepPlan& plan) {
    const auto begun = executor_->Begin(plan, [] {});
    EXPECT_TRUE(begun.ok()) << begun.status();
    return begun.ok() && *begun;
  }
  std::vector<SequenceResult> Collect() {
    const auto result = executor_->Collect();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->sequences : std::vector<SequenceResult>();
  }

  FakeBackend backend_;
  FakeDeviceSampler device_;
  LocalCommunicator local_;
  std::unique_ptr<ModelExecutor> executor_;
};

TEST_F(StepsInFlightTest, ADecodeTakesATokenThatTheHostDoesNotKnow) {
  ASSERT_TRUE(Begin(Whole(Start(0, {1, 2, 3}))));
  StepPlan second = Whole(Start(2, {20, 21}), 1);
  second.segments.push_back(Decode(0));
  ASSERT_TRUE(Begin(second));
  EXPECT_THAT(device_.begun[1].newest, ElementsAre(-1, -1, 0));
  auto results = Collect();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(4));
  EXPECT_EQ(results[0].tokens[0].logprob, -0.5f);
  EXPECT_EQ(results[0].committed_length, 3u);
  // The prompt in slot 2 came first, so the token of the other is the second one.
  ASSERT_TRUE(Begin(Decodes({0, 2})));
  EXPECT_THAT(device_.begun[2].newest, ElementsAre(1, 0));
  EXPECT_THAT(device_.begun[2].tokens, ElementsAre(5, 22));
  EXPECT_THAT(device_.begun[2].positions, ElementsAre(2, 1));
  results = Collect();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(Tokens(results[1]), ElementsAre(5));
  EXPECT_EQ(results[1].committed_length, 4u);
  results = Collect();
  EXPECT_THAT(Tokens(results[0]), ElementsAre(6));
  EXPECT_THAT(Tokens(results[1]), ElementsAre(23));
  // After that the host knows all tokens and runs a step itself.
  device_.can_sample = false;
  const auto executed = executor_->Execute(Decodes({0}));
  ASSERT_TRUE(executed.ok()) << executed.status();
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre(6));
  EXPECT_EQ(executed->sequences[0].committed_length, 6u);
}

TEST_F(StepsInFlightTest, ASequenceThatEndedOneStepBeforeReportsNothing) {
  ASSERT_TRUE(Begin(Whole(Start(0, {kEos - 2}))));
  ASSERT_TRUE(Begin(Whole(Start(1, {7}), 1)));
  EXPECT_EQ(Collect()[0].finish, ShardFinish::kNone);
  ASSERT_TRUE(Begin(Decodes({0, 1})));
  Collect();
  ASSERT_TRUE(Begin(Decodes({0, 1})));  // the host does not know that slot 0 says EOS
  auto results = Collect();
  EXPECT_EQ(results[0].finish, ShardFinish::kEos);
  results = Collect();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].slot, SlotId(1));
  EXPECT_THAT(Tokens(results[0]), ElementsAre(10));
}

TEST_F(StepsInFlightTest, AFailedSampleEndsOnlyItsSequence) {
  device_.bad_token = 8;
  ASSERT_TRUE(Begin(Whole(Start(0, {8}))));
  StepPlan second = Whole(Start(1, {20}), 1);
  second.segments.push_back(Decode(0));
  ASSERT_TRUE(Begin(second));
  const auto failed = Collect();
  EXPECT_EQ(failed[0].finish, ShardFinish::kError);
  EXPECT_FALSE(failed[0].error.empty());
  const auto results = Collect();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(21));
}

TEST_F(StepsInFlightTest, TokensInFlightCountForMinNewTokens) {
  SequenceStart start = Start(0, {1});
  start.min_new_tokens = 2;
  ASSERT_TRUE(Begin(Whole(start)));
  ASSERT_TRUE(Begin(Decodes({0})));
  Collect();
  ASSERT_TRUE(Begin(Decodes({0})));
  EXPECT_THAT(device_.begun[0].masked[0], ElementsAre(kEos));
  EXPECT_THAT(device_.begun[1].masked[0], ElementsAre(kEos));
  EXPECT_THAT(device_.begun[2].masked[0], IsEmpty());
}

// Each rule of steps_in_flight.h.
TEST_F(StepsInFlightTest, StepsThatNeedTheHostDoNotRunAhead) {
  struct Case {
    const char* what;
    std::function<void(StepPlan&)> change;
  };
  const std::vector<Case> cases = {
      {"drafts", [](StepPlan& plan) { plan.segments[0].max_rows = 2; }},
      {"a grammar",
       [](StepPlan& plan) { plan.starts[0].grammar.kind = GrammarSpec::Kind::kRegex; }},
      {"contrastive search",
       [](StepPlan& plan) {
         plan.starts[0].sampling.top_k = 4;
         plan.starts[0].sampling.penalty_alpha = 0.5f;
       }},
      {"log-probabilities of the prompt",
       [](StepPlan& plan) { plan.segments[1].logits = Segment::Logits::kAll; }},
      {"an end before its last result", [](StepPlan& plan) { plan.ends.push_back(SlotId(3)); }},
  };
  for (const Case& one : cases) {
    executor_->Reset();
    ASSERT_TRUE(Begin(Whole(Start(3, {9}), 3)));
    StepPlan plan = Whole(Start(0, {1, 2}));
    plan.segments.insert(plan.segments.begin(), Decode(3));
    one.change(plan);
    EXPECT_FALSE(Begin(plan)) << one.what;
    Collect();
    EXPECT_FALSE(executor_->Collect().ok());
  }
  executor_->Reset();
  device_.can_sample = false;
  EXPECT_FALSE(Begin(Whole(Start(0, {1, 2}))));
}

TEST_F(StepsInFlightTest, APlanThatCannotBeBegunIsExecutedOnce) {
  ASSERT_TRUE(Begin(Whole(Start(0, {1, 2}))));
  StepPlan plan = Whole(Start(1, {30, 31}), 1);
  plan.segments.push_back(Decode(0));
  plan.segments[1].max_rows = 2;
  ASSERT_FALSE(Begin(plan));
  EXPECT_FALSE(executor_->Execute(plan).ok()) << "a step in flight is not collected";
  EXPECT_THAT(Tokens(Collect()[0]), ElementsAre(3));
  device_.can_sample = false;
  const auto executed = executor_->Execute(plan);
  ASSERT_TRUE(executed.ok()) << executed.status();
  EXPECT_THAT(backend_.batches.back().blocks[0], ElementsAre(BlockId(1))) << "appended once";
  EXPECT_THAT(Tokens(executed->sequences[0]), ElementsAre(32));
  EXPECT_THAT(Tokens(executed->sequences[1]), ElementsAre(4));
}

TEST_F(StepsInFlightTest, ResetDropsStepsInFlight) {
  ASSERT_TRUE(Begin(Whole(Start(0, {1, 2}))));
  ASSERT_TRUE(Begin(Decodes({0})));
  executor_->Reset();
  EXPECT_THAT(device_.running, IsEmpty());
  ASSERT_TRUE(Begin(Whole(Start(0, {5}))));
  EXPECT_THAT(Tokens(Collect()[0]), ElementsAre(6));
}

TEST_F(StepsInFlightTest, AFailedDeviceEndsTheGroup) {
  ASSERT_TRUE(Begin(Whole(Start(0, {1, 2}))));
  device_.end_status = absl::InternalError("the device is lost");
  EXPECT_EQ(executor_->Collect().status().message(), "the device is lost");
}

}  // namespace
}  // namespace penstock::shard
