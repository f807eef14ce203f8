#include "shard/service/plan_checker.h"
#include "shard/service/start_checks.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "common/status.h"
#include "tests/unit/shard/executor/plans.h"
#include "tests/unit/shard/service/plan_checker_fixture.h"

namespace penstock::shard {
namespace {

using plans::Append;
using plans::Decode;
using plans::Prompt;
using plans::Restore;
using plans::Save;
using testing::HasSubstr;

TEST_F(PlanCheckerTest, AcceptsTheWholeLifeOfASequence) {
  Run(WholePrompt(0, 0), 4);
  StepPlan decode = NextPlan();
  decode.block_ops = {Append(0, 1)};
  decode.segments = {Decode(0)};
  Run(decode, 5);
  StepPlan end = NextPlan();
  end.ends = {SlotId(0)};
  end.starts = {Start(0, 2)};
  end.block_ops = {Append(0, 0)};
  end.segments = {Prompt(0, 0, 2)};
  Run(end, 2);
}

// The block is full, so a decode that computes a row would need another one.
TEST_F(PlanCheckerTest, ADecodeWithAPendingSelectionWritesNothing) {
  Reset(Grammars());
  StepPlan prompt = WholePrompt(0, 0);
  prompt.starts[0].grammar = {GrammarSpec::Kind::kRegex, "a"};
  Run(prompt, 4);
  for (int i = 0; i < 2; ++i) {
    StepPlan pending = NextPlan();
    pending.segments = {Decode(0)};
    Run(pending, 4);
  }
  StepPlan pays = NextPlan();
  pays.segments = {Decode(0)};
  Run(pays, 4, ShardFinish::kNone, 1);
  StepPlan decode = NextPlan();
  decode.segments = {Decode(0)};
  ExpectRefused(decode, "blocks of the table");
}

TEST_F(PlanCheckerTest, OnlyADecodeWithAGrammarMayReturnNoToken) {
  Run(WholePrompt(0, 0), 4);
  StepPlan decode = NextPlan();
  decode.block_ops = {Append(0, 1)};
  decode.segments = {Decode(0)};
  ASSERT_EQ(Message(checker_.Check(decode)), "");
  StepResult result;
  result.sequences = {ResultOf(decode.segments[0], 4)};
  EXPECT_TRUE(absl::IsInternal(checker_.Observe(decode, result)));
}

TEST_F(PlanCheckerTest, AcceptsAPromptInChunks) {
  StepPlan first = NextPlan();
  first.starts = {Start(0, 7)};
  first.block_ops = {Append(0, 3), Append(0, 1)};
  first.segments = {Prompt(0, 0, 5, Segment::Logits::kNone)};
  Run(first, 5);
  StepPlan second = NextPlan();
  second.segments = {Prompt(0, 5, 2)};
  Run(second, 7);
}

TEST_F(PlanCheckerTest, NamesTheEpoch) {
  StepPlan plan = NextPlan();
  plan.epoch = Epoch(6);
  ExpectRefused(plan, "`epoch` must be 7");
}

TEST_F(PlanCheckerTest, StepsAreGapless) {
  NextPlan();
  ExpectRefused(NextPlan(), "`step` must be 1");
}

TEST_F(PlanCheckerTest, ResetStartsAgainAtStepOne) {
  Run(WholePrompt(0, 0), 4);
  checker_.Reset();
  step_ = 0;
  Run(WholePrompt(0, 0), 4);
}

TEST_F(PlanCheckerTest, UnknownSlotsAreNamed) {
  StepPlan ends = NextPlan();
  ends.ends = {SlotId(2)};
  ExpectRefused(ends, "`ends` must be a slot that was started. Given: 2");
  checker_.Reset();
  StepPlan decode = NextPlan();
  decode.step = StepId(1);
  decode.segments = {Decode(9)};
  ExpectRefused(decode, "`segments.decode.slot` must be below 4. Given: 9");
}

TEST_F(PlanCheckerTest, ATakenSlotIsRefused) {
  Run(WholePrompt(0, 0), 4);
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 1)};
  ExpectRefused(plan, "`starts.slot` must be a free slot");
}

TEST_F(PlanCheckerTest, ASequenceIdIsUsedOnce) {
  Run(WholePrompt(0, 0), 4);
  StepPlan plan = NextPlan();
  plan.starts = {Start(1, 1)};
  plan.starts[0].sequence = SequenceId(100);
  ExpectRefused(plan, "`starts.sequence`");
}

TEST_F(PlanCheckerTest, BlocksOutOfRangeAreNamed) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 4)};
  plan.block_ops = {Append(0, 8)};
  ExpectRefused(plan, "`block_ops.dst` must be below 8. Given: 8");
}

TEST_F(PlanCheckerTest, ASegmentMustContinueThePrompt) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 6)};
  plan.block_ops = {Append(0, 0), Append(0, 1)};
  plan.segments = {Prompt(0, 1, 5)};
  ExpectRefused(plan, "`segments.prompt.first` must be 0");
}

TEST_F(PlanCheckerTest, ASegmentMustStayInsideThePrompt) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 3)};
  plan.block_ops = {Append(0, 0)};
  plan.segments = {Prompt(0, 0, 4)};
  ExpectRefused(plan, "`segments.prompt.count` must be from 1 to 3");
}

TEST_F(PlanCheckerTest, TheLastChunkSamples) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 3)};
  plan.block_ops = {Append(0, 0)};
  plan.segments = {Prompt(0, 0, 3, Segment::Logits::kNone)};
  ExpectRefused(plan, "`segments.prompt.logits`");
}

TEST_F(PlanCheckerTest, ADecodeNeedsTheWholePrompt) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 3)};
  plan.block_ops = {Append(0, 0)};
  plan.segments = {Decode(0)};
  ExpectRefused(plan, "a slot whose whole prompt was computed: 0 of 3");
}

TEST_F(PlanCheckerTest, ADecodeNeedsABlock) {
  Run(WholePrompt(0, 0), 4);
  StepPlan plan = NextPlan();
  plan.segments = {Decode(0)};
  ExpectRefused(plan, "within the 1 blocks of the table");
}

TEST_F(PlanCheckerTest, AFinishedSlotNeedsNoBlock) {
  Run(WholePrompt(0, 0), 4, ShardFinish::kEos);
  StepPlan plan = NextPlan();
  plan.segments = {Decode(0)};
  EXPECT_EQ(Message(checker_.Check(plan)), "");
  EXPECT_EQ(Message(checker_.Observe(plan, StepResult())), "");
}

TEST_F(PlanCheckerTest, ABlockHasOneWriter) {
  Run(WholePrompt(0, 0), 4);
  ExpectRefused(WholePrompt(1, 0), "is shared");
}

TEST_F(PlanCheckerTest, ASharedPrefixMayBeRead) {
  StepPlan first = NextPlan();
  first.starts = {Start(0, 6)};
  first.block_ops = {Append(0, 0), Append(0, 1)};
  first.segments = {Prompt(0, 0, 6)};
  Run(first, 6);
  StepPlan second = NextPlan();
  second.starts = {Start(1, 6)};
  second.starts[0].cached_length = 4;
  second.block_ops = {Append(1, 0), Append(1, 2)};
  second.segments = {Prompt(1, 4, 2)};
  Run(second, 6);
}

TEST_F(PlanCheckerTest, TheStepBudgetIsEnforced) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 17)};
  plan.block_ops = {Append(0, 0), Append(0, 1), Append(0, 2), Append(0, 3), Append(0, 4)};
  plan.segments = {Prompt(0, 0, 17)};
  ExpectRefused(plan, "at most max_step_tokens 16 rows. Given: 17");
}

TEST_F(PlanCheckerTest, TheSequenceLengthIsEnforced) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 21)};
  ExpectRefused(plan, "at most max_sequence_length 20. Given: 21");
}

TEST_F(PlanCheckerTest, ASlotHasOneSegment) {
  Run(WholePrompt(0, 0), 4);
  StepPlan plan = NextPlan();
  plan.block_ops = {Append(0, 1)};
  plan.segments = {Decode(0), Decode(0)};
  ExpectRefused(plan, "named by one segment of a plan only");
}

TEST_F(PlanCheckerTest, GroupsPartitionTheSegments) {
  StepPlan plan = WholePrompt(0, 0);
  plan.groups = {{{0}}, {{0}}};
  ExpectRefused(plan, "`groups.segments`");
}

TEST_F(PlanCheckerTest, GroupsContainEverySegment) {
  StepPlan plan = WholePrompt(0, 0);
  plan.groups = {{{}}};
  ExpectRefused(plan, "`groups.segments` must be all 1 segments. Given: 0");
}

TEST_F(PlanCheckerTest, PromptTokensMustBeInTheVocabulary) {
  for (const TokenId token : {-1, 100}) {
    checker_.Reset();
    StepPlan plan = NextPlan();
    plan.step = StepId(1);
    plan.starts = {Start(0, 2)};
    plan.starts[0].prompt[1] = token;
    ExpectRefused(
        plan, "`starts.prompt` must be token ids from 0 to 99. Given: " + std::to_string(token));
  }
}

TEST_F(PlanCheckerTest, ACopyNeverWritesASharedBlock) {
  StepPlan first = NextPlan();
  first.starts = {Start(0, 6), Start(1, 6)};
  first.starts[1].cached_length = 4;
  first.block_ops = {Append(0, 0), Append(0, 1), Append(1, 0)};
  BlockOp copy;
  copy.kind = BlockOp::Kind::kCopy;
  copy.src = BlockId(1);
  copy.dst = BlockId(0);
  first.block_ops.push_back(copy);
  ExpectRefused(first, "`block_ops.dst` must be a block of one table");
}

TEST_F(PlanCheckerTest, ACandidateDecodeHasARowForEachAndWritesOnePosition) {
  PlanBounds bounds = Bounds();
  bounds.max_candidates = 6;
  checker_ = PlanChecker(bounds);
  StepPlan start = WholePrompt(0, 0);
  start.starts[0].sampling.penalty_alpha = 0.6f;
  start.starts[0].sampling.top_k = 6;
  Run(start, 4);
  StepPlan decode = NextPlan();
  decode.block_ops = {Append(0, 1)};
  decode.segments = {Decode(0)};
  decode.segments[0].max_rows = 6;  // more than a block holds
  Run(decode, 5);
  StepPlan second = NextPlan();
  second.segments = decode.segments;
  Run(second, 6);
  StepPlan fewer = NextPlan();
  fewer.segments = {Decode(0)};
  fewer.segments[0].max_rows = 5;
  ExpectRefused(fewer, "segments.decode.max_rows");
}

TEST_F(PlanCheckerTest, DraftsOfAStepAreBounded) {
  PlanBounds bounds = Bounds();
  bounds.max_decode_rows = kVerifiedRows;
  bounds.max_step_tokens = 2 * kVerifiedRows;
  checker_ = PlanChecker(bounds);
  Run(WholePrompt(0, 0), 4);
  Run(WholePrompt(1, 1), 4);
  StepPlan decode = NextPlan();
  for (std::uint32_t i = 0; i < 6; ++i) decode.block_ops.push_back(Append(i % 2, 2 + i));
  decode.segments = {Decode(0), Decode(1)};
  decode.segments[0].max_rows = 8;
  decode.segments[1].max_rows = 9;
  Run(decode, 5);
  StepPlan more = NextPlan();
  more.segments = decode.segments;
  more.segments[1].max_rows = 10;
  ExpectRefused(more, "segments.decode.max_rows");
}

// The second sequence continues where the first had computed 4 of 6 prompt tokens.
TEST_F(PlanCheckerTest, ACachedStartOfARecurrentModelRestoresASnapshotOfItsLength) {
  PlanBounds bounds = Bounds();
  bounds.prefixes = false;
  bounds.snapshots = 2;
  const auto begin = [&] {
    Reset(bounds);
    step_ = 0;
    StepPlan first = NextPlan();
    first.starts = {Start(0, 6)};
    first.block_ops = {Append(0, 0), Append(0, 1), Save(0, 1)};
    first.segments = {Prompt(0, 0, 4, Segment::Logits::kNone)};
    Run(first, 4);
    StepPlan second = NextPlan();
    second.starts = {Start(1, 6)};
    second.starts[0].cached_length = 4;
    second.block_ops = {Append(1, 0), Append(1, 2)};
    second.segments = {Prompt(1, 4, 2)};
    return second;
  };
  StepPlan good = begin();
  good.block_ops.push_back(Restore(1, 1));
  Run(good, 6);
  ExpectRefused(begin(), "starts.cached_length");
  StepPlan never_saved = begin();
  never_saved.block_ops.push_back(Restore(1, 0));
  ExpectRefused(never_saved, "block_ops.src");
  StepPlan unknown = begin();
  unknown.block_ops.push_back(Restore(1, 2));
  ExpectRefused(unknown, "below the 2 snapshots");
  StepPlan running = begin();
  running.block_ops.insert(running.block_ops.end(), {Restore(1, 1), Restore(0, 1)});
  ExpectRefused(running, "block_ops.src");
}

TEST_F(PlanCheckerTest, OnlyAPromptOfThePlanIsSaved) {
  PlanBounds bounds = Bounds();
  bounds.snapshots = 1;
  Reset(bounds);
  Run(WholePrompt(0, 0), 4);
  StepPlan decode = NextPlan();
  decode.block_ops = {Append(0, 1), Save(0, 0)};
  decode.segments = {Decode(0)};
  ExpectRefused(decode, "a slot whose prompt the plan computes");
}

TEST_F(PlanCheckerTest, CandidatesAreBounded) {
  StepPlan off = WholePrompt(0, 0);
  off.starts[0].sampling.penalty_alpha = 0.6f;
  off.starts[0].sampling.top_k = 2;
  ExpectRefused(off, "--contrastive-search");
  PlanBounds bounds = Bounds();
  bounds.max_candidates = 3;
  checker_ = PlanChecker(bounds);
  step_ = 0;
  StepPlan many = WholePrompt(0, 0);
  many.starts[0].sampling.penalty_alpha = 0.6f;
  many.starts[0].sampling.top_k = 4;
  ExpectRefused(many, "starts.sampling.top_k");
  checker_.Reset();
  step_ = 0;
  StepPlan good = WholePrompt(0, 0);
  good.starts[0].sampling.penalty_alpha = 0.6f;
  good.starts[0].sampling.top_k = 3;
  Run(good, 4);
}

TEST_F(PlanCheckerTest, AnEngineThatSkipsPositionsIsFound) {
  Run(WholePrompt(0, 0), 4);
  StepPlan plan = NextPlan();
  plan.block_ops = {Append(0, 1)};
  plan.segments = {Decode(0)};
  ASSERT_EQ(Message(checker_.Check(plan)), "");
  StepResult result;
  result.sequences = {ResultOf(plan.segments[0], 6)};
  const absl::Status status = checker_.Observe(plan, result);
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(Message(status), HasSubstr("`sequences.committed_length` must be from 5 to 5"));
}

struct SamplingCase {
  const char* field;
  void (*invalidate)(SamplingParams&);
};

void PrintTo(const SamplingCase& each, std::ostream* out) { *out << each.field; }

class SamplingRange : public testing::TestWithParam<SamplingCase> {};

TEST_P(SamplingRange, IsNamed) {
  SamplingParams params;
  ASSERT_TRUE(CheckSampling(params, 100, 0).ok());
  GetParam().invalidate(params);
  const absl::Status status = CheckSampling(params, 100, 0);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr(GetParam().field));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, SamplingRange,
    testing::Values(
        SamplingCase{"temperature", [](SamplingParams& p) { p.temperature = 0; }},
        SamplingCase{"temperature", [](SamplingParams& p) { p.temperature = NAN; }},
        SamplingCase{"top_p", [](SamplingParams& p) { p.top_p = 0; }},
        SamplingCase{"top_p", [](SamplingParams& p) { p.top_p = 1.5f; }},
        SamplingCase{"top_n_sigma", [](SamplingParams& p) { p.top_n_sigma = -1; }},
        SamplingCase{"bad_words", [](SamplingParams& p) { p.bad_words.emplace_back(); }},
        SamplingCase{"typical_p", [](SamplingParams& p) { p.typical_p = 0; }},
        SamplingCase{"min_p", [](SamplingParams& p) { p.min_p = 1; }},
        SamplingCase{"repetition_penalty", [](SamplingParams& p) { p.repetition_penalty = 0; }},
        SamplingCase{"frequency_penalty", [](SamplingParams& p) { p.frequency_penalty = 3; }},
        SamplingCase{"presence_penalty", [](SamplingParams& p) { p.presence_penalty = -3; }},
        SamplingCase{"bias_tokens",
                     [](SamplingParams& p) {
                       p.logit_bias = {{100, 1}};
                     }},
        SamplingCase{"bias_values",
                     [](SamplingParams& p) {
                       p.logit_bias = {{1, 101}};
                     }},
        SamplingCase{"penalty_alpha", [](SamplingParams& p) { p.penalty_alpha = 0.6f; }}),
    [](const auto& info) { return info.param.field + ("_" + std::to_string(info.index)); });

}  // namespace
}  // namespace penstock::shard
