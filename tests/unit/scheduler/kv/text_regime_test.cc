// Texts whose K and V depend on their length, through the whole scheduler.
#include "scheduler/kv/text_regime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint32_t kOriginal = 10;

GroupCapacity With(LengthRule rule) {
  GroupCapacity capacity = Harness::Capacity();
  capacity.length_rule = rule;
  capacity.original_length = kOriginal;
  capacity.max_candidates = 4;
  return capacity;
}

// What became of requests that were all given at once.
struct Course {
  std::vector<SequenceStart> starts;
  std::vector<Decision> preempted;
  std::vector<TokenId> tokens;  // of all requests
  std::uint32_t cached = 0;     // tokens of their first starts
  std::uint32_t most_rows = 0;  // of a decode

  void Take(const Outputs& out) {
    for (const PlanOut& plan : out.plans) {
      starts.insert(starts.end(), plan.plan.starts.begin(), plan.plan.starts.end());
      for (const Segment& segment : plan.plan.segments) {
        if (segment.kind == Segment::Kind::kDecode)
          most_rows = std::max(most_rows, segment.max_rows);
      }
    }
    for (const Decision& decision : All(out, DecisionKind::kPreempted)) {
      preempted.push_back(decision);
    }
    for (const Tokens& some : All<Tokens>(out)) {
      for (const SampledToken& token : some.tokens) tokens.push_back(token.token);
    }
    for (const Started& started : All<Started>(out)) cached += started.cached_tokens;
  }
};

Course Serve(Harness& harness, const Arrival& arrival) {
  Course course;
  course.Take(harness.Apply(arrival));
  while (harness.in_flight() > 0) course.Take(harness.Result());
  EXPECT_THAT(harness.shard().violations(), IsEmpty());
  return course;
}

Course ServeAlone(LengthRule rule, const Arrival& arrival, const Config& config = {}) {
  Harness harness(config, With(rule));
  harness.Up();
  return Serve(harness, arrival);
}

TEST(TextRegime, ATextThatPassesTheOriginalLengthIsComputedAgain) {
  const Arrival arrival = Harness::Request(1, 6, 20);
  const Course usual = ServeAlone(LengthRule::kNone, arrival);
  const Course course = ServeAlone(LengthRule::kRecompute, arrival);
  EXPECT_THAT(usual.starts, SizeIs(1));
  EXPECT_EQ(course.tokens, usual.tokens);
  ASSERT_THAT(course.starts, SizeIs(2));
  EXPECT_EQ(course.starts[1].prompt_length, kOriginal + 1);
  EXPECT_EQ(course.starts[1].sample_index_base, 5u);
  EXPECT_EQ(course.starts[1].cached_length, 0u);
  ASSERT_THAT(course.preempted, SizeIs(1));
  EXPECT_EQ(course.preempted[0].short_of, Budget::kOriginalLength);
  EXPECT_EQ(course.preempted[0].needed, kOriginal + 1);
  EXPECT_EQ(course.preempted[0].available, kOriginal);
}

TEST(TextRegime, ATextThatEndsAtTheOriginalLengthIsNot) {
  EXPECT_THAT(ServeAlone(LengthRule::kRecompute, Harness::Request(1, 6, 5)).starts, SizeIs(1));
  EXPECT_THAT(ServeAlone(LengthRule::kRecompute, Harness::Request(1, 6, 6)).starts, SizeIs(2));
  EXPECT_THAT(ServeAlone(LengthRule::kRecompute, Harness::Request(1, 11, 9)).starts, SizeIs(1));
}

TEST(TextRegime, DraftsDoNotPassTheOriginalLength) {
  Config config;
  config.max_decode_rows = 4;
  const Arrival arrival = Harness::Request(1, 6, 20);
  const Course course = ServeAlone(LengthRule::kRecompute, arrival, config);
  EXPECT_EQ(course.tokens, ServeAlone(LengthRule::kNone, arrival, config).tokens);
  EXPECT_GT(course.most_rows, 1u);
  ASSERT_THAT(course.starts, SizeIs(2));
  EXPECT_EQ(course.starts[1].prompt_length, kOriginal + 1);
}

// Its decode computes the token after the text, so a text of the original length must begin again.
TEST(TextRegime, ContrastiveSearchRecomputesOneTokenEarlier) {
  Arrival arrival = Harness::Request(1, 6, 20);
  arrival.sampling.penalty_alpha = 0.6f;
  arrival.sampling.top_k = 3;
  const Course course = ServeAlone(LengthRule::kRecompute, arrival);
  EXPECT_EQ(course.tokens, ServeAlone(LengthRule::kNone, arrival).tokens);
  ASSERT_THAT(course.starts, SizeIs(2));
  EXPECT_EQ(course.starts[1].prompt_length, kOriginal);
}

Arrival Counting(std::uint64_t id, std::uint32_t prompt) {
  Arrival arrival = Harness::Request(id, prompt, 1);
  std::iota(arrival.prompt.begin(), arrival.prompt.end(), 5);
  return arrival;
}

TEST(TextRegime, LongTextsShareOnlyWithLongTexts) {
  Harness harness({}, With(LengthRule::kRecompute));
  harness.Up();
  EXPECT_EQ(Serve(harness, Counting(1, 9)).cached, 0u);
  EXPECT_EQ(Serve(harness, Counting(2, 13)).cached, 0u);
  EXPECT_EQ(Serve(harness, Counting(3, 15)).cached, 12u);
  EXPECT_EQ(Serve(harness, Counting(4, 10)).cached, 8u);
}

TEST(TextRegime, WithDynamicRopeLongPromptsShareOnlyWithThoseOfTheirLength) {
  Harness harness({}, With(LengthRule::kPromptLength));
  harness.Up();
  EXPECT_EQ(Serve(harness, Counting(1, 9)).cached, 0u);
  EXPECT_EQ(Serve(harness, Counting(2, 10)).cached, 8u);
  EXPECT_EQ(Serve(harness, Counting(3, 13)).cached, 0u);
  EXPECT_EQ(Serve(harness, Counting(4, 14)).cached, 0u);
  EXPECT_EQ(Serve(harness, Counting(5, 13)).cached, 12u);
}

TEST(TextRegime, ATenantForgetsItsPinsInEveryRegime) {
  Harness harness({}, With(LengthRule::kRecompute));
  harness.Up();
  Arrival arrival = Counting(1, 13);
  arrival.tenant = "a";
  arrival.pinned_tokens = 12;
  Serve(harness, arrival);
  EXPECT_THAT(harness.Apply(ForgetPrefixes{"", std::nullopt}).pins, IsEmpty());
  EXPECT_THAT(harness.Apply(ForgetPrefixes{"a", std::nullopt}).pins, SizeIs(1));
}

}  // namespace
}  // namespace penstock::scheduler
