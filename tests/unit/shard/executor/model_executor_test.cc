#include "shard/executor/model_executor.h"

#include <gmock/gmock.h>

#include <cmath>

#include "shard/parallel/local_communicator.h"
#include "tests/unit/shard/executor/fake_backend.h"
#include "tests/unit/shard/executor/following_communicator.h"
#include "tests/unit/shard/executor/plans.h"

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint32_t kVocabulary = 50;
constexpr TokenId kEos = 40;

using plans::Append;
using plans::Decode;
using plans::Decodes;
using plans::Prompt;
using plans::Restore;
using plans::Save;
using plans::Start;
using plans::Tokens;
using plans::Whole;

class ModelExecutorTest : public testing::Test {
 protected:
  ModelExecutorTest() : backend_(kVocabulary) { Use(local_); }

  void Use(Communicator& communicator) {
    ExecutorOptions options;
    options.slots = 4;
    options.vocabulary = kVocabulary;
    options.eos_token_ids = {kEos};
    options.max_logit_rows = 3;
    executor_ = std::make_unique<ModelExecutor>(options, backend_, communicator);
  }

  std::vector<SequenceResult> Run(const StepPlan& plan) {
    auto result = executor_->Execute(plan);
    EXPECT_EQ(Message(result.status()), "");
    return result.ok() ? result->sequences : std::vector<SequenceResult>();
  }

  FakeBackend backend_;
  LocalCommunicator local_;
  std::unique_ptr<ModelExecutor> executor_;
};

TEST_F(ModelExecutorTest, APromptAndDecodesAreOneRaggedBatch) {
  Run(Whole(Start(0, {1, 2, 3}), 5));
  StepPlan plan = Decodes({0});
  plan.starts = {Start(2, {10, 11, 12, 13})};
  plan.block_ops = {Append(2, 7), Append(2, 6)};
  plan.segments.push_back(Prompt(2, 0, 3, Segment::Logits::kNone));
  const auto results = Run(plan);

  const FakeBackend::Recorded& batch = backend_.batches.back();
  EXPECT_THAT(batch.tokens, ElementsAre(4, 10, 11, 12));
  EXPECT_THAT(batch.logit_rows, ElementsAre(0));
  ASSERT_EQ(batch.segments.size(), 2u);
  EXPECT_EQ(batch.segments[0].context_length, 3u);
  EXPECT_EQ(batch.segments[0].query_count, 1u);
  EXPECT_EQ(batch.segments[1].query_start, 1u);
  EXPECT_EQ(batch.segments[1].query_count, 3u);
  EXPECT_EQ(batch.segments[1].context_length, 0u);
  EXPECT_THAT(batch.blocks[1], ElementsAre(BlockId(7), BlockId(6)));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(5));
  EXPECT_EQ(results[0].committed_length, 4u);
  EXPECT_THAT(Tokens(results[1]), IsEmpty());
  EXPECT_EQ(results[1].committed_length, 3u);
}

class TwoGroups : public ModelExecutorTest {
 protected:
  void Use(bool window_tables) {
    ExecutorOptions options;
    options.slots = 4;
    options.kv_groups = 2;
    options.window_tables = window_tables;
    options.vocabulary = kVocabulary;
    options.eos_token_ids = {kEos};
    executor_ = std::make_unique<ModelExecutor>(options, backend_, local_);
  }
  static BlockOp Copy(std::uint32_t src, std::uint32_t dst, std::uint32_t kv_group) {
    BlockOp copy;
    copy.kind = BlockOp::Kind::kCopy;
    copy.kv_group = kv_group;
    copy.src = BlockId(src);
    copy.dst = BlockId(dst);
    return copy;
  }
};

TEST_F(TwoGroups, HaveABlockTableEach) {
  Use(true);
  StepPlan plan = Whole(Start(0, {1, 2, 3}), 5);
  plan.block_ops.push_back(Append(0, kNoBlock.value(), 1));
  plan.block_ops.push_back(Append(0, 2, 1));
  plan.block_ops.push_back(Copy(1, 2, 1));
  Run(plan);
  EXPECT_THAT(backend_.batches.back().blocks[0], ElementsAre(BlockId(5)));
  EXPECT_THAT(backend_.batches.back().window_blocks[0], ElementsAre(kNoBlock, BlockId(2)));
  EXPECT_EQ(backend_.events.front(), "copy in group 1 1 2");
}

TEST_F(TwoGroups, ShareTheTableOfADriverThatHasOne) {
  Use(false);
  StepPlan plan = Whole(Start(0, {1, 2, 3}), 5);
  plan.block_ops.push_back(Copy(1, 5, 0));
  Run(plan);
  EXPECT_THAT(backend_.batches.back().blocks[0], ElementsAre(BlockId(5)));
  EXPECT_THAT(backend_.batches.back().window_blocks[0], IsEmpty());
  EXPECT_THAT(backend_.events, ElementsAre("copy 1 5", "copy in group 1 1 5", "execute"));
}

TEST_F(ModelExecutorTest, ACachedPrefixIsContext) {
  StepPlan plan = Whole(Start(0, {1, 2, 3, 4}));
  plan.starts[0].cached_length = 3;
  plan.segments = {Prompt(0, 3, 1)};
  EXPECT_THAT(Tokens(Run(plan)[0]), ElementsAre(5));
  EXPECT_EQ(backend_.batches.back().segments[0].context_length, 3u);
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre(4));
}

TEST_F(ModelExecutorTest, AFinishedSequenceComputesNothing) {
  Run(Whole(Start(0, {kEos - 2})));
  auto results = Run(Decodes({0}));
  EXPECT_THAT(Tokens(results[0]), ElementsAre(kEos));
  EXPECT_EQ(results[0].finish, ShardFinish::kEos);
  const std::size_t batches = backend_.batches.size();
  EXPECT_THAT(Run(Decodes({0})), IsEmpty());
  EXPECT_EQ(backend_.batches.size(), batches) << "nothing is computed";

  StepPlan stops = Whole(Start(1, {20}));
  stops.starts[0].stop_token_ids = {21};
  EXPECT_EQ(Run(stops)[0].finish, ShardFinish::kStopToken);
  StepPlan full = Whole(Start(2, {20}));
  full.starts[0].max_new_tokens = 1;
  EXPECT_EQ(Run(full)[0].finish, ShardFinish::kLength);
  StepPlan deaf = Whole(Start(3, {kEos - 1}));
  deaf.starts[0].ignore_eos = true;
  EXPECT_EQ(Run(deaf)[0].finish, ShardFinish::kNone);
}

// Candidates after token t are t + 1 and then the lowest ids, which are equally probable.
StepPlan Searching(StepPlan plan, std::uint32_t top_k) {
  plan.starts[0].sampling.penalty_alpha = 0.9f;
  plan.starts[0].sampling.top_k = top_k;
  return plan;
}

TEST_F(ModelExecutorTest, ContrastiveSearchCommitsOneOfTheCandidates) {
  backend_.similarity_of = [](TokenId token) { return token > 30 ? 1.0f : 0.1f; };
  const auto prompt = Run(Searching(Whole(Start(0, {7, 30})), 3));
  EXPECT_THAT(Tokens(prompt[0]), IsEmpty()) << "a prompt only finds candidates";
  EXPECT_EQ(prompt[0].committed_length, 2u);

  StepPlan decode = Decodes({0});
  decode.segments[0].max_rows = 3;
  const auto results = Run(decode);
  const FakeBackend::Recorded& batch = backend_.batches.back();
  EXPECT_THAT(batch.tokens, ElementsAre(31, 0, 1));
  EXPECT_TRUE(batch.segments[0].candidates);
  EXPECT_EQ(batch.segments[0].context_length, 2u);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(0)) << "31 is too similar";
  EXPECT_EQ(results[0].committed_length, 3u);
  EXPECT_THAT(std::vector<std::string>(backend_.events.end() - 3, backend_.events.end()),
              ElementsAre("execute", "similarities", "commit"));

  Run(decode);
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre(1, 0, 2)) << "from the winner's logits";
  EXPECT_EQ(backend_.batches.back().segments[0].context_length, 3u);
}

TEST_F(ModelExecutorTest, ASearchThatEndsOrFailsDoesNotAffectOthers) {
  StepPlan ends = Searching(Whole(Start(0, {kEos - 1})), 2);
  ends.starts[0].sampling.penalty_alpha = 0.01f;
  Run(ends);
  StepPlan decode = Decodes({0});
  decode.segments[0].max_rows = 2;
  auto results = Run(decode);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(kEos));
  EXPECT_EQ(results[0].finish, ShardFinish::kEos);

  backend_.similarity_of = [](TokenId) { return std::nanf(""); };
  Run(Searching(Whole(Start(1, {5})), 2));
  decode.segments[0].slot = SlotId(1);
  results = Run(decode);
  EXPECT_EQ(results[0].finish, ShardFinish::kError);
  EXPECT_THAT(Tokens(results[0]), IsEmpty());
  EXPECT_THAT(results[0].error, HasSubstr("NaN"));
}

StepPlan WithRows(StepPlan plan, std::uint32_t rows) {
  for (Segment& segment : plan.segments) segment.max_rows = rows;
  return plan;
}

// The model counts upwards, so drafts from a text that counts are right until the text jumps.
TEST_F(ModelExecutorTest, DraftsAreKeptAsLongAsTheyAreRight) {
  Run(Whole(Start(0, {5, 6, 7, 8, 20, 5})));  // 6 follows
  const auto results = Run(WithRows(Decodes({0}), 5));
  const FakeBackend::Recorded& batch = backend_.batches.back();
  EXPECT_THAT(batch.tokens, ElementsAre(6, 7, 8, 20, 5)) << "the tokens that followed 5, 6 before";
  EXPECT_THAT(batch.logit_rows, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(batch.segments[0].context_length, 6u);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(7, 8, 9)) << "9 was drafted as 20";
  EXPECT_EQ(results[0].committed_length, 9u) << "6, 7 and 8 have K/V";
  EXPECT_EQ(batch.segments[0].drafts, 4u);
  EXPECT_EQ(backend_.events.back(), "keep 0 2") << "7 and 8";

  Run(Decodes({0}));
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre(9)) << "one row, no draft";
  EXPECT_EQ(backend_.batches.back().segments[0].context_length, 9u);
}

TEST_F(ModelExecutorTest, StatesAreRestoredBeforeAStepAndSavedAfterIt) {
  StepPlan plan = Whole(Start(1, {5, 6, 7}));
  plan.starts[0].cached_length = 2;
  plan.segments = {Prompt(1, 2, 1)};
  plan.block_ops.insert(plan.block_ops.end(), {Save(1, 3), Restore(1, 4)});
  Run(plan);
  EXPECT_THAT(backend_.events,
              ElementsAre("restore slot 1 snapshot 4", "execute", "save slot 1 snapshot 3"));
}

TEST_F(ModelExecutorTest, ADraftThatEndsTheSequenceIsItsLastToken) {
  Run(Whole(Start(0, {kEos - 3, kEos - 2, kEos - 1, kEos, 7, kEos - 4})));
  Run(Decodes({0}));
  const auto results = Run(WithRows(Decodes({0}), 5));
  EXPECT_THAT(Tokens(results[0]), ElementsAre(kEos - 1, kEos));
  EXPECT_EQ(results[0].finish, ShardFinish::kEos);
}

TEST_F(ModelExecutorTest, OtherRanksKeepTheSameDrafts) {
  FollowingCommunicator follower;
  Use(follower);
  follower.tokens = {{6}, {7, 8, 9, kNotSelected, kNotSelected}, {10}};
  Run(Whole(Start(0, {5, 6, 7, 8, 20, 5})));
  const auto results = Run(WithRows(Decodes({0}), 5));
  EXPECT_THAT(Tokens(results[0]), ElementsAre(7, 8, 9));
  EXPECT_EQ(results[0].committed_length, 9u);
  Run(Decodes({0}));
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre(9));
}

TEST_F(ModelExecutorTest, RowsAfterAWrongDraftAreIgnored) {
  backend_.nan_token = 20;
  Run(Whole(Start(0, {5, 6, 20, 8, 9, 5})));
  const auto results = Run(WithRows(Decodes({0}), 3));
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre(6, 20, 8));
  EXPECT_THAT(Tokens(results[0]), ElementsAre(7));
  EXPECT_EQ(results[0].finish, ShardFinish::kNone);
}

TEST_F(ModelExecutorTest, EndTokensAreMaskedBeforeMinNewTokens) {
  StepPlan plan = Whole(Start(0, {kEos - 1}));
  plan.starts[0].min_new_tokens = 1;
  const auto results = Run(plan);
  EXPECT_NE(results[0].tokens[0].token, kEos);
  EXPECT_EQ(results[0].finish, ShardFinish::kNone);
}

TEST_F(ModelExecutorTest, EachRowOfAStepHasItsOwnMaskedTokens) {
  StepPlan plan = Whole(Start(0, {10}));
  plan.starts.push_back(Start(1, {20}));
  plan.starts.push_back(Start(2, {30}));
  for (const std::size_t i : {0u, 1u}) plan.starts[i].min_new_tokens = 1;
  plan.starts[0].stop_token_ids = {11};
  plan.starts[1].stop_token_ids = {21, 31};
  plan.block_ops = {Append(0, 0), Append(1, 1), Append(2, 2)};
  plan.segments.push_back(Prompt(1, 0, 1));
  plan.segments.push_back(Prompt(2, 0, 1));
  const auto results = Run(plan);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(0))
      << "11 is masked; all others are equally probable";
  EXPECT_THAT(Tokens(results[1]), ElementsAre(0));
  EXPECT_THAT(Tokens(results[2]), ElementsAre(31));
}

TEST_F(ModelExecutorTest, PromptLogprobsComeWithEveryChunk) {
  StepPlan plan = Whole(Start(0, {1, 2, 9, 10, 11}));
  plan.starts[0].logprobs = {LogprobRequest::Kind::kRaw, 0, true};
  plan.segments = {Prompt(0, 0, 3, Segment::Logits::kAll)};
  const float likely = static_cast<float>(4.0 - std::log(std::exp(4.0) + kVocabulary - 1));
  const float unlikely = likely - 4.0f;
  auto results = Run(plan);
  EXPECT_THAT(
      results[0].prompt_logprobs,
      ElementsAre(testing::FloatEq(likely), testing::FloatEq(unlikely), testing::FloatEq(likely)));
  EXPECT_THAT(Tokens(results[0]), IsEmpty());
  StepPlan rest;
  rest.segments = {Prompt(0, 3, 2, Segment::Logits::kAll)};
  results = Run(rest);
  EXPECT_THAT(results[0].prompt_logprobs, ElementsAre(testing::FloatEq(likely)));
  EXPECT_THAT(Tokens(results[0]), ElementsAre(12));
  EXPECT_FLOAT_EQ(results[0].tokens[0].logprob, likely);
}

TEST_F(ModelExecutorTest, PromptAlternativesComeWithTheirRanks) {
  StepPlan plan = Whole(Start(0, {1, 2, 9}));
  plan.starts[0].logprobs = {LogprobRequest::Kind::kRaw, 0, true, 1};
  plan.segments = {Prompt(0, 0, 3, Segment::Logits::kAll)};
  const auto results = Run(plan);
  ASSERT_EQ(results[0].prompt_alternatives.size(), 2u);
  EXPECT_EQ(results[0].prompt_alternatives[0].rank, 1u);
  EXPECT_EQ(results[0].prompt_alternatives[0].top[0],
            (TokenLogprob{2, results[0].prompt_logprobs[0]}));
  EXPECT_EQ(results[0].prompt_alternatives[1].rank, 2u);
  EXPECT_EQ(results[0].prompt_alternatives[1].top[0].token, 3);
}

TEST_F(ModelExecutorTest, LogitsAreReadInChunksAcrossSegments) {
  StepPlan plan;
  plan.starts = {Start(0, {1, 2, 3, 4}), Start(1, {20, 21}), Start(2, {30})};
  plan.segments = {Prompt(0, 0, 4, Segment::Logits::kAll), Prompt(1, 0, 2), Prompt(2, 0, 1)};
  plan.block_ops = {Append(0, 0), Append(1, 1), Append(2, 2)};
  const auto results = Run(plan);
  EXPECT_THAT(backend_.logit_calls, ElementsAre(3, 3));  // max_logit_rows is 3
  EXPECT_EQ(results[0].prompt_logprobs.size(), 3u);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(5));
  EXPECT_THAT(Tokens(results[1]), ElementsAre(22));
  EXPECT_THAT(Tokens(results[2]), ElementsAre(31));
}

// The threads may take the rows in any order.
TEST_F(ModelExecutorTest, RowsAreSharedByTheThreadsOfTheBackend) {
  backend_.threads = 2;
  Use(local_);
  StepPlan plan = Whole(Start(0, {1, 2, 3}));
  plan.starts.push_back(Start(1, {10, 11}));
  plan.starts.push_back(Start(2, {20, 22, 24}));
  plan.starts[1].sampling.do_sample = true;
  plan.starts[1].sampling.top_k = 1;
  plan.starts[2].logprobs.prompt_logprobs = true;
  plan.block_ops = {Append(0, 0), Append(1, 1), Append(2, 2)};
  plan.segments.push_back(Prompt(1, 0, 2));
  plan.segments.push_back(Prompt(2, 0, 3, Segment::Logits::kAll));
  const auto results = Run(plan);
  EXPECT_THAT(backend_.items_of_host, ElementsAre(3, 2));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_THAT(Tokens(results[0]), ElementsAre(4));
  EXPECT_THAT(Tokens(results[1]), ElementsAre(12));
  EXPECT_THAT(Tokens(results[2]), ElementsAre(25));
  const float other = -std::log(std::exp(4.0f) + kVocabulary - 1);
  EXPECT_THAT(results[2].prompt_logprobs,
              ElementsAre(testing::FloatNear(other, 1e-5f), testing::FloatNear(other, 1e-5f)));
}

TEST_F(ModelExecutorTest, NanLogitsEndOnlyTheirSequence) {
  backend_.nan_token = 7;
  StepPlan plan;
  plan.starts = {Start(0, {7}), Start(1, {20})};
  plan.segments = {Prompt(0, 0, 1), Prompt(1, 0, 1)};
  plan.block_ops = {Append(0, 0), Append(1, 1)};
  const auto results = Run(plan);
  EXPECT_EQ(results[0].finish, ShardFinish::kError);
  EXPECT_THAT(results[0].error, HasSubstr("NaN"));
  EXPECT_THAT(Tokens(results[0]), IsEmpty());
  EXPECT_THAT(Tokens(results[1]), ElementsAre(21));
  const auto next = Run(Decodes({0, 1}));
  ASSERT_EQ(next.size(), 1u);
  EXPECT_THAT(Tokens(next[0]), ElementsAre(22));
}

TEST_F(ModelExecutorTest, PenaltiesKnowPromptAndOutput) {
  // Presence and frequency take 2 each from a token that was generated once: logit 4 becomes 0, and
  // the lowest id wins the tie.
  StepPlan plan = Whole(Start(0, {2, 1}));
  plan.starts[0].sampling.presence_penalty = 2.0f;
  plan.starts[0].sampling.frequency_penalty = 2.0f;
  EXPECT_THAT(Tokens(Run(plan)[0]), ElementsAre(2)) << "the 2 of the prompt was not generated";

  // The same request after a restart: it generated 2 before, which counts.
  executor_->Reset();
  StepPlan again = Whole(Start(0, {2, 1, 2, 1}));
  again.starts[0].sampling = plan.starts[0].sampling;
  again.starts[0].sample_index_base = 2;
  EXPECT_THAT(Tokens(Run(again)[0]), ElementsAre(0));
}

TEST_F(ModelExecutorTest, CopiesComeBeforeTheStep) {
  StepPlan plan = Whole(Start(0, {1}));
  BlockOp copy;
  copy.kind = BlockOp::Kind::kCopy;
  copy.src = BlockId(3);
  copy.dst = BlockId(9);
  plan.block_ops.push_back(copy);
  Run(plan);
  EXPECT_THAT(backend_.events, ElementsAre("copy 3 9", "execute"));
}

TEST_F(ModelExecutorTest, ASlotIsFreeAfterItsEndAndAfterReset) {
  Run(Whole(Start(0, {1})));
  StepPlan plan = Whole(Start(0, {30}));
  plan.ends = {SlotId(0)};
  EXPECT_THAT(Tokens(Run(plan)[0]), ElementsAre(31));
  executor_->Reset();
  EXPECT_THAT(Tokens(Run(Whole(Start(0, {10})))[0]), ElementsAre(11));
}

TEST_F(ModelExecutorTest, OtherRanksTakeTheTokensOfRank0) {
  FollowingCommunicator follower;
  follower.tokens = {{33}, {kEos}};
  Use(follower);
  auto results = Run(Whole(Start(0, {1})));
  EXPECT_THAT(backend_.logit_calls, ElementsAre(1)) << "every rank gathers logits";
  EXPECT_THAT(Tokens(results[0]), ElementsAre(33));
  results = Run(Decodes({0}));
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre(33));
  EXPECT_EQ(results[0].finish, ShardFinish::kEos);
}

TEST_F(ModelExecutorTest, ATokenOutsideTheVocabularyEndsTheGroup) {
  FollowingCommunicator follower;
  follower.tokens = {{static_cast<TokenId>(kVocabulary)}};
  Use(follower);
  EXPECT_TRUE(absl::IsInternal(executor_->Execute(Whole(Start(0, {1}))).status()));
  EXPECT_TRUE(follower.aborted);
}

TEST_F(ModelExecutorTest, AFailedStepAbortsTheCommunicator) {
  FollowingCommunicator follower;
  Use(follower);
  backend_.execute_status = absl::UnavailableError("rank 0 is gone");
  EXPECT_EQ(Message(executor_->Execute(Whole(Start(0, {1}))).status()), "rank 0 is gone");
  EXPECT_TRUE(follower.aborted);
}

TEST_F(ModelExecutorTest, APlanWithoutSegmentsComputesNothing) {
  EXPECT_THAT(Run(StepPlan()), IsEmpty());
  EXPECT_THAT(backend_.events, IsEmpty());
}

}  // namespace
}  // namespace penstock::shard
