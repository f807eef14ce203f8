#include "scheduler/log/input_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "scheduler/log/output_digest.h"

namespace penstock::scheduler {
namespace {

using ::testing::HasSubstr;

// Decoding and encoding gives the same bytes, so nothing is lost.
void ExpectRoundTrip(const Input& input) {
  const std::string log = EncodeLogHeader(Config{}) + EncodeInput(input);
  InputLogReader reader(log);
  ASSERT_TRUE(reader.ReadHeader()) << reader.error();
  const auto read = reader.Next();
  ASSERT_TRUE(read) << reader.error();
  EXPECT_EQ(read->what.index(), input.what.index());
  EXPECT_EQ(EncodeInput(*read), EncodeInput(input));
  EXPECT_FALSE(reader.Next());
  EXPECT_EQ(reader.error(), "");
}

Arrival FullArrival() {
  Arrival a;
  a.request = RequestId(~std::uint64_t{0});
  a.prompt = {0, -1, std::numeric_limits<TokenId>::max(), std::numeric_limits<TokenId>::min()};
  a.max_new_tokens = 7;
  a.length_given = false;
  a.request_class = RequestClass::kOpenAiChat;
  a.predicted_tokens = 5;
  a.ranked_tokens = 6;
  a.min_new_tokens = 3;
  a.sampling.do_sample = true;
  a.sampling.temperature = 0.1f;
  a.sampling.seed = 0x8000000000000001ull;
  a.sampling.logit_bias = {{5, -100.0f}, {6, 1.5f}};
  a.logprobs = {LogprobRequest::Kind::kProcessed, 4, true};
  a.stop_token_ids = {1, 2};
  a.ignore_eos = true;
  a.priority = -4;
  a.tenant = std::string("a\0b", 3);
  a.trace_id = "trace";
  a.pinned_tokens = 2;
  return a;
}

TEST(InputLog, EveryFieldOfAnArrivalSurvives) {
  const Arrival written = FullArrival();
  const std::string log = EncodeLogHeader({}) + EncodeInput({Time(Duration(-5)), written});
  InputLogReader reader(log);
  ASSERT_TRUE(reader.ReadHeader());
  const auto input = reader.Next();
  ASSERT_TRUE(input);
  EXPECT_EQ(input->now, Time(Duration(-5)));
  const Arrival& read = std::get<Arrival>(input->what);
  EXPECT_EQ(read.request, written.request);
  EXPECT_EQ(read.prompt, written.prompt);
  EXPECT_EQ(read.max_new_tokens, written.max_new_tokens);
  EXPECT_EQ(read.length_given, written.length_given);
  EXPECT_EQ(read.request_class, written.request_class);
  EXPECT_EQ(read.predicted_tokens, written.predicted_tokens);
  EXPECT_EQ(read.ranked_tokens, written.ranked_tokens);
  EXPECT_EQ(read.min_new_tokens, written.min_new_tokens);
  EXPECT_EQ(read.sampling, written.sampling);
  EXPECT_EQ(read.logprobs, written.logprobs);
  EXPECT_EQ(read.stop_token_ids, written.stop_token_ids);
  EXPECT_EQ(read.ignore_eos, written.ignore_eos);
  EXPECT_EQ(read.priority, written.priority);
  EXPECT_EQ(read.tenant, written.tenant);
  EXPECT_EQ(read.trace_id, written.trace_id);
  EXPECT_EQ(read.pinned_tokens, written.pinned_tokens);
}

TEST(InputLog, EveryKindOfInputSurvives) {
  StepResult result;
  result.epoch = Epoch(2);
  result.step = StepId(300);
  result.digest = 0xfedcba9876543210ull;
  result.sequences = {{SlotId(1),
                       SequenceId(9),
                       {{3, -0.5f, {{4, -1.0f}}}},
                       17,
                       ShardFinish::kError,
                       "bad",
                       {-1.0f, 2.0f}}};
  result.timings = {Duration(1), Duration(2), Duration(3)};
  result.memory_bytes = 1ull << 35;
  GroupUp up{GroupId(1), Epoch(2), {100, 16, 8, 1024, 512, true}, {{{1, 2, 3, Duration(4)}}}};
  up.capacity.window = 5;
  up.capacity.window_blocks = 6;
  const Time now{Duration(123456789)};
  ExpectRoundTrip({now, FullArrival()});
  ExpectRoundTrip({now, Cancel{RequestId(4)}});
  ExpectRoundTrip({now, FinishAt{RequestId(4), 9}});
  ExpectRoundTrip({now, StepDone{GroupId(1), result}});
  ExpectRoundTrip({now, up});
  ExpectRoundTrip({now, GroupLost{GroupId(1), Epoch(2), "rank 0 died"}});
  ExpectRoundTrip({now, Drain{}});
  ExpectRoundTrip({now, ForgetPrefixes{"a", std::nullopt}});
  ExpectRoundTrip({now, ForgetPrefixes{"", RequestId(7)}});

  const std::string log = EncodeLogHeader({}) + EncodeInput({now, StepDone{GroupId(1), result}}) +
                          EncodeInput({now, up});
  InputLogReader reader(log);
  reader.ReadHeader();
  EXPECT_EQ(std::get<StepDone>(reader.Next()->what).result, result);
  EXPECT_EQ(std::get<GroupUp>(reader.Next()->what).capacity, up.capacity);
}

TEST(InputLog, TheConfigSurvives) {
  Config config;
  config.max_step_tokens = 1;
  config.max_batch_prefill_tokens = 2;
  config.max_batch_total_tokens = 3;
  config.max_batch_size = 4;
  config.max_waiting_requests = 5;
  config.pipeline_depth = 6;
  config.max_decode_rows = 7;
  config.batching = Batching::kStatic;
  config.static_grouping = StaticGrouping::kEqual;
  config.prefill = Prefill::kWhole;
  config.admission = AdmissionMode::kOptimistic;
  config.order = Order::kPriority;
  config.max_overtakes = 8;
  config.starvation_steps = 11;
  config.starvation_quantum = 12;
  config.waiting_served_permille = 9;
  config.max_waiting_tokens = 10;
  const std::string log = EncodeLogHeader(config);
  EXPECT_EQ(InputLogReader(log).ReadHeader(), config);
}

TEST(InputLog, AnotherFileIsRefused) {
  InputLogReader reader("{\"step\":1}");
  EXPECT_FALSE(reader.ReadHeader());
  EXPECT_THAT(reader.error(), HasSubstr("not an input log"));
}

// Any cut or flipped bit is detected, and the reader never reads beyond the bytes.
TEST(InputLog, ACutOrDamagedLogIsReadUpToTheDamage) {
  const std::string head = EncodeLogHeader({});
  const std::string good = EncodeInput({Time(Duration(1)), Cancel{RequestId(1)}});
  const std::string last = EncodeInput({Time(Duration(2)), FullArrival()});
  for (std::size_t cut = 1; cut < last.size(); ++cut) {
    const std::string log = head + good + last.substr(0, cut);
    InputLogReader reader(log);
    ASSERT_TRUE(reader.ReadHeader());
    ASSERT_TRUE(reader.Next());
    EXPECT_FALSE(reader.Next());
    EXPECT_THAT(reader.error(), HasSubstr("cut off"));
  }
  for (std::size_t at = 0; at < last.size(); ++at) {
    std::string damaged = last;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const std::string log = head + good + damaged;
    InputLogReader reader(log);
    ASSERT_TRUE(reader.ReadHeader());
    ASSERT_TRUE(reader.Next());
    EXPECT_FALSE(reader.Next()) << "byte " << at;
    EXPECT_NE(reader.error(), "");
  }
}

TEST(InputLog, AnotherVersionIsNamed) {
  InputLogReader reader("penstock input log 1\nxyz");
  EXPECT_FALSE(reader.ReadHeader());
  EXPECT_THAT(reader.error(), HasSubstr("an input log of version 1;"));
}

TEST(OutputDigest, CountsWhatAPaddedStepIsToldAndReported) {
  Outputs out;
  PlanOut& plan = out.plans.emplace_back();
  plan.plan.groups.push_back({{0}, {SlotId(1)}, 8});
  out.steps.emplace_back();
  const std::uint64_t before = DigestOf(out);
  const auto expect_other = [&](auto& field, auto value) {
    const auto kept = std::exchange(field, value);
    EXPECT_NE(DigestOf(out), before);
    field = kept;
  };
  SegmentGroup& group = plan.plan.groups[0];
  expect_other(group.rows[0], SlotId(2));
  expect_other(group.width, 9u);
  expect_other(out.steps[0].decode_parts, 1u);
  expect_other(out.steps[0].decode_cells, std::uint64_t{1});
  expect_other(out.steps[0].decode_tokens, std::uint64_t{1});
  expect_other(out.steps[0].resplit, true);
  EXPECT_EQ(DigestOf(out), before);
}

TEST(InputLog, DigestsBelongToTheInputBeforeThem) {
  const Input cancel{Time(Duration(1)), Cancel{RequestId(1)}};
  const std::string log = EncodeLogHeader({}) + EncodeInput(cancel) + EncodeOutputDigest(7) +
                          EncodeInput(cancel) + EncodeInput(cancel) + EncodeOutputDigest(9);
  InputLogReader reader(log);
  ASSERT_TRUE(reader.ReadHeader());
  EXPECT_EQ(reader.Next()->digest, 7u);
  EXPECT_EQ(reader.Next()->digest, std::nullopt) << "the core broke here, or the log was cut";
  EXPECT_EQ(reader.Next()->digest, 9u);
  EXPECT_FALSE(reader.Next());
  EXPECT_EQ(reader.error(), "");
}

}  // namespace
}  // namespace penstock::scheduler
