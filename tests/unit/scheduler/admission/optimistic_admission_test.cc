// Optimistic admission through the whole scheduler: which request is preempted, what its client
// sees, and that every request ends.
#include "scheduler/admission/optimistic_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

Config Optimistic() {
  Config config;
  config.admission = AdmissionMode::kOptimistic;
  config.max_waiting_requests = 20000;
  return config;
}

// All events and decisions of each request, until no plan is in flight.
struct Course {
  std::map<std::uint64_t, std::vector<TokenId>> tokens;
  std::map<std::uint64_t, std::uint32_t> preemptions;
  std::map<std::uint64_t, std::uint32_t> starts;  // Started events
  std::uint32_t finished = 0;
  std::uint32_t failed = 0;
  std::uint32_t most_running = 0;

  void Take(const Outputs& out, const Harness& harness) {
    for (const Event& event : out.events) {
      const std::uint64_t id = event.request.value();
      if (const auto* t = std::get_if<Tokens>(&event.what)) {
        for (const SampledToken& token : t->tokens) tokens[id].push_back(token.token);
      }
      starts[id] += std::holds_alternative<Started>(event.what) ? 1 : 0;
      finished += std::holds_alternative<Finished>(event.what) ? 1 : 0;
      failed += std::holds_alternative<Failed>(event.what) ? 1 : 0;
    }
    for (const Decision& d : All(out, DecisionKind::kPreempted)) ++preemptions[d.request.value()];
    most_running = std::max(most_running, harness.state().running);
  }
  void Drain(Harness& harness) {
    while (harness.in_flight() > 0) Take(harness.Result(), harness);
  }
  std::uint32_t most_preempted() const {
    std::uint32_t most = 0;
    for (const auto& [id, count] : preemptions) most = std::max(most, count);
    return most;
  }
};

// Which requests have a length of their own.
enum class Given { kNone, kEverySecond, kAll };

// 100 long outputs.
Course HundredLongOutputs(std::uint32_t blocks, Given given, Config config = Optimistic()) {
  GroupCapacity capacity = Harness::Capacity();
  capacity.blocks = blocks;
  capacity.block_size = 16;
  capacity.slots = 128;
  capacity.max_sequence_length = 64 * 16;
  sim::SimGroupOptions shard;
  shard.tokens.eos_one_in = 200;
  Harness harness(config, capacity, shard);
  Course run;
  run.Take(harness.Up(), harness);
  std::mt19937_64 random(7);
  for (std::uint64_t id = 1; id <= 100; ++id) {
    Arrival arrival = Harness::Request(id, 5 + static_cast<std::uint32_t>(random() % 60), 300);
    arrival.length_given = given == Given::kAll || (given == Given::kEverySecond && id % 2 == 0);
    run.Take(harness.Apply(arrival), harness);
  }
  run.Drain(harness);
  EXPECT_THAT(harness.shard().violations(), IsEmpty());
  EXPECT_EQ(harness.state().blocks_free + harness.state().blocks_cached, blocks);
  return run;
}

// A pool of 64 blocks.
TEST(OptimisticAdmission, ASmallPoolChangesNoTokenAndFailsNoRequest) {
  const Course ample = HundredLongOutputs(4096, Given::kNone);
  EXPECT_EQ(ample.most_preempted(), 0u);
  for (const Given given : {Given::kNone, Given::kAll}) {
    const Course tight = HundredLongOutputs(64, given);
    EXPECT_EQ(tight.failed, 0u);
    EXPECT_EQ(tight.finished, 100u);
    EXPECT_GT(tight.most_preempted(), 0u) << "the pool was not too small";
    EXPECT_LE(tight.most_preempted(), OptimisticAdmission::kMaxPreemptions);
    EXPECT_EQ(tight.tokens, ample.tokens);
    for (const auto& [id, count] : tight.starts) EXPECT_EQ(count, 1u) << "request " << id;
  }
}

TEST(OptimisticAdmission, ASmallPoolWithDraftsAndADeepPipelineChangesNoToken) {
  for (const std::uint32_t depth : {1u, 3u, 4u}) {
    Config config = Optimistic();
    config.pipeline_depth = depth;
    config.max_decode_rows = 3;
    const Course ample = HundredLongOutputs(4096, Given::kNone, config);
    const Course tight = HundredLongOutputs(64, Given::kNone, config);
    EXPECT_EQ(tight.finished, 100u);
    EXPECT_GT(tight.most_preempted(), 0u);
    EXPECT_LE(tight.most_preempted(), OptimisticAdmission::kMaxPreemptions);
    EXPECT_EQ(tight.tokens, ample.tokens);
  }
}

// AdmissionMode::kMixed: a request with a length of its own is never preempted.
TEST(MixedAdmission, OnlyRequestsWithoutALengthArePreempted) {
  Config config = Optimistic();
  config.admission = AdmissionMode::kMixed;
  const Course ample = HundredLongOutputs(4096, Given::kNone);
  const Course open = HundredLongOutputs(64, Given::kNone, config);
  EXPECT_GT(open.most_preempted(), 0u);
  EXPECT_EQ(open.tokens, ample.tokens);
  EXPECT_EQ(HundredLongOutputs(64, Given::kAll, config).most_preempted(), 0u);
  const Course both = HundredLongOutputs(64, Given::kEverySecond, config);
  EXPECT_EQ(both.finished, 100u);
  EXPECT_EQ(both.tokens, ample.tokens);
  EXPECT_GT(both.most_preempted(), 0u);
  EXPECT_LE(both.most_preempted(), OptimisticAdmission::kMaxPreemptions);
  for (const auto& [id, count] : both.preemptions) EXPECT_EQ(id % 2, 1u);
}

// max_batch_total_tokens below the size of the pool is kept like that size.
TEST(OptimisticAdmission, MaxBatchTotalTokensBoundsRunningSequences) {
  Config config = Optimistic();
  config.max_batch_total_tokens = 64 * 16;
  const Course ample = HundredLongOutputs(4096, Given::kNone);
  const Course tight = HundredLongOutputs(4096, Given::kNone, config);
  EXPECT_EQ(tight.finished, 100u);
  EXPECT_GT(tight.most_preempted(), 0u);
  EXPECT_EQ(tight.tokens, ample.tokens);
}

// Orca's no-deadlock test: 10,000 random requests against a pool of 1.2x the largest.
TEST(OptimisticAdmission, TenThousandRandomRequestsOnASmallPoolAllFinish) {
  for (const AdmissionMode admission :
       {AdmissionMode::kGuaranteed, AdmissionMode::kOptimistic, AdmissionMode::kMixed}) {
    Config config = Optimistic();
    config.admission = admission;
    GroupCapacity capacity = Harness::Capacity();
    capacity.block_size = 16;
    capacity.blocks = 19;  // the largest request: 256 tokens, 16 blocks
    capacity.slots = 64;
    sim::SimGroupOptions shard;
    shard.tokens.eos_one_in = 40;
    shard.contents = false;
    Harness harness(config, capacity, shard);
    Course run;
    run.Take(harness.Up(), harness);
    std::mt19937_64 random(11);
    for (std::uint64_t id = 1; id <= 10000; ++id) {
      const auto prompt = static_cast<std::uint32_t>(1 + random() % 64);
      const auto most = static_cast<std::uint32_t>(1 + random() % (256 - prompt));
      run.Take(harness.Arrive(id, prompt, most), harness);
    }
    run.Drain(harness);
    EXPECT_EQ(run.finished, 10000u);
    EXPECT_EQ(run.failed, 0u);
    EXPECT_LE(run.most_preempted(), OptimisticAdmission::kMaxPreemptions);
    EXPECT_EQ(harness.state().blocks_free + harness.state().blocks_cached, capacity.blocks);
  }
}

TEST(OptimisticAdmission, ARequestAsLargeAsThePoolRunsAndALargerOneIsRefused) {
  for (const AdmissionMode admission :
       {AdmissionMode::kGuaranteed, AdmissionMode::kOptimistic, AdmissionMode::kMixed}) {
    Config config = Optimistic();
    config.admission = admission;
    GroupCapacity capacity = Harness::Capacity();  // 64 blocks of 4 tokens
    capacity.max_sequence_length = 512;
    Harness harness(config, capacity);
    harness.Up();
    const Outputs refused = harness.Arrive(1, 100, 157);
    ASSERT_THAT(All<Failed>(refused), SizeIs(1));
    EXPECT_EQ(All<Failed>(refused)[0].message,
              "`inputs` tokens + `max_new_tokens` must be <= 256 (a KV cache of 64 blocks of 4 "
              "tokens). Given: 100 `inputs` tokens and 157 `max_new_tokens`");
    Course run;
    run.Take(harness.Arrive(2, 100, 156), harness);
    run.Drain(harness);
    EXPECT_EQ(run.finished, 1u);
    EXPECT_EQ(run.tokens[2].size(), 156u);
    EXPECT_EQ(run.most_preempted(), 0u);
  }
}

// Without max_new_tokens a request may use all that fits, yet requests must run together. A pool of
// 16 worst cases, 64 requests with prompts of a tenth of it, no EOS.
TEST(OptimisticAdmission, RequestsWithoutALengthRunTogether) {
  GroupCapacity capacity = Harness::Capacity();
  capacity.block_size = 16;
  capacity.max_sequence_length = 1024;
  capacity.blocks = 16 * 64;
  capacity.slots = 128;
  Harness harness(Optimistic(), capacity);
  Course run;
  run.Take(harness.Up(), harness);
  for (std::uint64_t id = 1; id <= 64; ++id) {
    Arrival arrival = Harness::Request(id, 40 + static_cast<std::uint32_t>(id % 60), 0);
    arrival.max_new_tokens = 1024 - static_cast<std::uint32_t>(arrival.prompt.size());
    arrival.length_given = false;
    arrival.request_class = RequestClass::kTgi;
    arrival.ignore_eos = true;
    run.Take(harness.Apply(arrival), harness);
  }
  run.Drain(harness);
  EXPECT_GE(run.most_running, 32u);
  EXPECT_EQ(run.finished, 64u);
  EXPECT_LE(run.most_preempted(), OptimisticAdmission::kMaxPreemptions);
  for (const auto& [id, tokens] : run.tokens) {
    EXPECT_EQ(tokens.size(), 1024 - (40 + id % 60)) << "request " << id;
  }
}

// --- One preemption, step by step. 10 blocks of 4: both requests reserve 4 of their 10 blocks.
class OnePreemption : public ::testing::Test {
 protected:
  OnePreemption() : harness_(Optimistic(), Capacity()) { harness_.Up(); }

  static GroupCapacity Capacity() {
    GroupCapacity capacity = Harness::Capacity();
    capacity.blocks = 10;
    return capacity;
  }
  static Arrival Request(std::uint64_t id) {
    Arrival arrival = Harness::Request(id, 8, 32);
    arrival.length_given = false;
    arrival.min_new_tokens = 30;
    arrival.sampling.frequency_penalty = 0.5f;
    arrival.sampling.seed = 99;
    return arrival;
  }
  // Delivers results until a request is preempted. Returns the decision.
  Decision Preempt() {
    run_.Take(harness_.Apply(Request(1)), harness_);
    run_.Take(harness_.Apply(Request(2)), harness_);
    while (harness_.in_flight() > 0) {
      const Outputs out = harness_.Result();
      run_.Take(out, harness_);
      if (const auto found = All(out, DecisionKind::kPreempted); !found.empty()) return found[0];
    }
    return {};
  }

  Harness harness_;
  Course run_;
};

TEST_F(OnePreemption, TheLatestArrivalIsPreemptedAndTheRecordSaysWhy) {
  const Decision decision = Preempt();
  EXPECT_EQ(decision.request, RequestId(2));
  EXPECT_EQ(decision.short_of, Budget::kBlocks);
  EXPECT_GT(decision.needed, decision.available);
  EXPECT_EQ(decision.behind, RequestId(1)) << "who needed the blocks";
  EXPECT_TRUE(decision.step);
}

TEST_F(OnePreemption, TokensInFlightAreKeptAndTheRestartContinuesAfterThem) {
  Preempt();
  const std::size_t before = run_.tokens[2].size();
  SequenceStart restart;
  while (harness_.in_flight() > 0) {
    const Outputs out = harness_.Result();
    run_.Take(out, harness_);
    for (const PlanOut& plan : out.plans) {
      for (std::size_t i = 0; i < plan.requests.size(); ++i) restart = plan.plan.starts[i];
    }
    if (restart.sample_index_base > 0) break;
  }
  EXPECT_EQ(restart.sequence, SequenceId(3)) << "every start is a new sequence";
  EXPECT_GT(restart.sample_index_base, before) << "a token was in flight";
  EXPECT_EQ(restart.sample_index_base, run_.tokens[2].size());
  EXPECT_EQ(restart.prompt_length, 8 + restart.sample_index_base);
  std::vector<TokenId> expected(8, 102);
  expected.insert(expected.end(), run_.tokens[2].begin(), run_.tokens[2].end());
  EXPECT_EQ(restart.prompt, expected);
  EXPECT_EQ(restart.max_new_tokens, 32 - restart.sample_index_base);
  EXPECT_EQ(restart.min_new_tokens, 30 - restart.sample_index_base);
  EXPECT_EQ(restart.sampling.seed, 99u);
  EXPECT_EQ(restart.sampling.frequency_penalty, 0.5f);
  run_.Drain(harness_);
  EXPECT_EQ(run_.finished, 2u);
  EXPECT_EQ(run_.tokens[2].size(), 32u);
  EXPECT_EQ(run_.starts[2], 1u);
}

TEST_F(OnePreemption, ACancelWithTokensInFlightEndsTheRequestOnce) {
  Preempt();
  Outputs out = harness_.Apply(Cancel{RequestId(2)});
  ASSERT_THAT(All<Finished>(out), SizeIs(1));
  EXPECT_EQ(All<Finished>(out)[0].generated_tokens, run_.tokens[2].size());
  run_.Take(out, harness_);
  run_.Drain(harness_);
  EXPECT_EQ(run_.finished, 2u);
  EXPECT_EQ(harness_.state().waiting, 0u);
}

TEST_F(OnePreemption, ACancelOrAStopStringEndsAPreemptedRequestInTheQueue) {
  Preempt();
  while (harness_.state().waiting == 0) run_.Take(harness_.Result(), harness_);
  const auto said = static_cast<std::uint32_t>(run_.tokens[2].size());
  Outputs out = harness_.Apply(FinishAt{RequestId(2), said - 1});
  ASSERT_THAT(All<Finished>(out), SizeIs(1));
  EXPECT_EQ(All<Finished>(out)[0].reason, FinishReason::kStopString);
  EXPECT_EQ(All<Finished>(out)[0].generated_tokens, said - 1);
  EXPECT_EQ(harness_.state().waiting, 0u);
  run_.Take(out, harness_);
  run_.Drain(harness_);
  EXPECT_EQ(run_.finished, 2u);
}

TEST_F(OnePreemption, AStopStringBeyondItsTokensIsKeptForTheRestart) {
  Preempt();
  while (harness_.state().waiting == 0) run_.Take(harness_.Result(), harness_);
  const auto said = static_cast<std::uint32_t>(run_.tokens[2].size());
  run_.Take(harness_.Apply(FinishAt{RequestId(2), said + 2}), harness_);
  run_.Drain(harness_);
  EXPECT_EQ(run_.tokens[2].size(), said + 2);
  EXPECT_EQ(run_.finished, 2u);
}

TEST_F(OnePreemption, ALostGroupDoesNotEndARequestThatWaitsToRestart) {
  Preempt();
  while (harness_.state().waiting == 0) run_.Take(harness_.Result(), harness_);
  run_.Take(harness_.Apply(GroupLost{GroupId(0), harness_.epoch(), "rank 0 died"}), harness_);
  EXPECT_EQ(run_.failed, 1u);
  run_.Take(harness_.Up(), harness_);
  run_.Drain(harness_);
  EXPECT_EQ(run_.tokens[2].size(), 32u);
}

}  // namespace
}  // namespace penstock::scheduler
