// Rows whose grammar mask is late. The most probable token after t is t + 1.
#include <gmock/gmock.h>

#include <memory>

#include "shard/executor/model_executor.h"
#include "shard/parallel/local_communicator.h"
#include "tests/unit/shard/executor/fake_backend.h"
#include "tests/unit/shard/executor/following_communicator.h"
#include "tests/unit/shard/executor/plans.h"
#include "tests/unit/shard/sampling/gated_grammars.h"

namespace penstock::shard {
namespace {

using plans::Append;
using plans::Decodes;
using plans::Prompt;
using plans::Start;
using plans::Tokens;
using plans::Whole;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GrammarStateTest : public testing::Test {
 protected:
  GrammarStateTest() { Use(local_, &grammars_.cache()); }

  void Use(Communicator& communicator, GrammarCache* grammars) {
    ExecutorOptions options;
    options.slots = 4;
    options.vocabulary = kByteRows;
    options.eos_token_ids = {kByteEnd};
    options.grammars = grammars;
    options.late_masks = true;
    executor_ = std::make_unique<ModelExecutor>(options, backend_, communicator);
  }

  StepResult Run(const StepPlan& plan) {
    auto result = executor_->Execute(plan);
    EXPECT_EQ(Message(result.status()), "");
    return result.ok() ? *std::move(result) : StepResult();
  }

  void Force(Communicator& communicator, GrammarCache* grammars) {
    ExecutorOptions options;
    options.slots = 4;
    options.vocabulary = kByteRows;
    options.eos_token_ids = {kByteEnd};
    options.grammars = grammars;
    options.forced_tokens = true;
    options.forced_wait = kTestTimeout;
    executor_ = std::make_unique<ModelExecutor>(options, backend_, communicator);
  }

  StepResult Decode(std::uint32_t slot, std::uint32_t rows) {
    StepPlan decode = Decodes({slot});
    decode.segments[0].max_rows = rows;
    return Run(decode);
  }

  static StepPlan Bound(std::uint32_t slot, TokenId last, const std::string& regex) {
    StepPlan plan = Whole(Start(slot, {last}), slot);
    plan.starts[0].grammar = GatedGrammars::Regex(regex);
    return plan;
  }

  // Decodes the slot until a token comes.
  SequenceResult Await(std::uint32_t slot, std::uint32_t rows = 1) {
    StepPlan decode = Decodes({slot});
    decode.segments[0].max_rows = rows;
    const Time end = SteadyNow() + kTestTimeout;
    while (SteadyNow() < end) {
      const StepResult result = Run(decode);
      if (result.late_masks == 0) return result.sequences.at(0);
      EXPECT_THAT(Tokens(result.sequences.at(0)), IsEmpty());
    }
    ADD_FAILURE() << "no token came";
    return {};
  }

  FakeBackend backend_{kByteRows};
  GatedGrammars grammars_;
  LocalCommunicator local_;
  std::unique_ptr<ModelExecutor> executor_;
};

TEST_F(GrammarStateTest, OtherSequencesContinueWhileAGrammarIsCompiled) {
  Run(Whole(Start(0, {1, 2}), 0));
  StepPlan joins = Decodes({0});
  StepPlan other = Bound(1, 'b', "[a-e]+");
  joins.starts = other.starts;
  joins.block_ops = other.block_ops;
  joins.segments.push_back(other.segments[0]);
  StepResult result = Run(joins);
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre(4));
  EXPECT_THAT(Tokens(result.sequences[1]), IsEmpty());
  EXPECT_EQ(result.sequences[1].finish, ShardFinish::kNone);
  EXPECT_EQ(result.sequences[1].committed_length, 1u);
  EXPECT_EQ(result.late_masks, 1u);

  result = Run(Decodes({1, 0}));
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre(4))
      << "a pending selection computes no row";
  EXPECT_THAT(Tokens(result.sequences[0]), IsEmpty());
  EXPECT_EQ(result.sequences[0].committed_length, 1u);
  EXPECT_THAT(Tokens(result.sequences[1]), ElementsAre(5));

  grammars_.Open();
  const SequenceResult first = Await(1);
  EXPECT_THAT(Tokens(first), ElementsAre('c')) << "as if the step had waited";
  EXPECT_EQ(first.committed_length, 1u);
  EXPECT_THAT(Tokens(Await(1)), ElementsAre('d'));
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre('c'));
  EXPECT_EQ(backend_.batches.back().segments[0].context_length, 1u);
}

TEST_F(GrammarStateTest, KeptLogitsAreMasked) {
  Run(Bound(0, 'a', "[x-z]+"));
  grammars_.Open();
  EXPECT_THAT(Tokens(Await(0)), ElementsAre('x'))
      << "b is forbidden; all others are equally probable";
}

TEST_F(GrammarStateTest, AGrammarThatFailsLateEndsOnlyItsSequence) {
  Run(Bound(0, 'a', "("));
  grammars_.Open();
  const SequenceResult result = Await(0);
  EXPECT_EQ(result.finish, ShardFinish::kError);
  EXPECT_THAT(result.error, HasSubstr("grammar: "));
  EXPECT_THAT(Run(Decodes({0})).sequences, IsEmpty());
}

TEST_F(GrammarStateTest, ASequenceMayEndWhileItsGrammarIsCompiled) {
  Run(Bound(0, 'a', "[x-z]+"));
  StepPlan next = Bound(1, 'b', "[a-e]+");
  next.ends = {SlotId(0)};
  Run(next);
  grammars_.Open();
  EXPECT_THAT(Tokens(Await(1)), ElementsAre('c'));
}

TEST_F(GrammarStateTest, ContrastiveSearchFindsCandidatesInKeptLogits) {
  StepPlan prompt = Bound(0, 'b', "[a-e]+");
  prompt.starts[0].sampling.penalty_alpha = 0.1f;
  prompt.starts[0].sampling.top_k = 2;
  EXPECT_EQ(Run(prompt).late_masks, 1u);
  grammars_.Open();
  EXPECT_THAT(Tokens(Await(0, 2)), IsEmpty()) << "only candidates are found";
  EXPECT_EQ(backend_.batches.size(), 1u);
  StepPlan decode = Decodes({0});
  decode.segments[0].max_rows = 2;
  EXPECT_THAT(Tokens(Run(decode).sequences[0]), ElementsAre('c'));
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre('c', 'a'));
}

TEST_F(GrammarStateTest, TheStepWaitsIfTheDriverForbidsLateMasks) {
  ExecutorOptions options;
  options.slots = 1;
  options.vocabulary = kByteRows;
  options.grammars = &grammars_.cache();
  executor_ = std::make_unique<ModelExecutor>(options, backend_, local_);
  std::promise<void> executed;
  backend_.on_execute = [&](const RaggedBatch&) { executed.set_value(); };
  const auto opener = std::async(std::launch::async, [&] {
    executed.get_future().wait();
    grammars_.Open();
  });
  const StepResult result = Run(Bound(0, 'b', "[a-e]+"));
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('c'));
  EXPECT_EQ(result.late_masks, 0u);
}

TEST_F(GrammarStateTest, OtherRanksFollowALateMask) {
  FollowingCommunicator follower;
  Use(follower, nullptr);
  follower.tokens = {{kNotSelected}, {kNotSelected}, {'c'}, {'d'}};
  EXPECT_THAT(Tokens(Run(Bound(0, 'b', "[a-e]+")).sequences[0]), IsEmpty());
  EXPECT_THAT(Tokens(Run(Decodes({0})).sequences[0]), IsEmpty());
  EXPECT_THAT(Tokens(Run(Decodes({0})).sequences[0]), ElementsAre('c'));
  EXPECT_EQ(backend_.batches.size(), 1u) << "nothing was computed since the prompt";
  const StepResult result = Run(Decodes({0}));
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('d'));
  EXPECT_EQ(result.sequences[0].committed_length, 2u);
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre('c'));
}

std::vector<bool> ForcedOf(const SequenceResult& result) {
  std::vector<bool> forced;
  for (const SampledToken& token : result.tokens) forced.push_back(token.forced);
  return forced;
}

TEST_F(GrammarStateTest, ForcedTokensAreRowsOfTheNextStep) {
  grammars_.Open();
  Force(local_, &grammars_.cache());
  StepResult result = Run(Bound(0, 'q', "abcd[m-q]yz"));
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('a'));
  EXPECT_THAT(ForcedOf(result.sequences[0]), ElementsAre(true));
  result = Decode(0, 16);
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('b', 'c', 'd', 'm'));
  EXPECT_THAT(ForcedOf(result.sequences[0]), ElementsAre(true, true, true, false));
  EXPECT_EQ(result.sequences[0].committed_length, 5u);
  EXPECT_EQ(result.drafted, 0u);
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre('a', 'b', 'c', 'd'));
  EXPECT_THAT(backend_.batches.back().logit_rows, ElementsAre(3)) << "only the last row is sampled";
  result = Decode(0, 16);
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('y', 'z', kByteEnd));
  EXPECT_EQ(result.sequences[0].finish, ShardFinish::kEos);
}

TEST_F(GrammarStateTest, ForcedTokensAreTheSameOneAtATime) {
  grammars_.Open();
  Force(local_, &grammars_.cache());
  std::vector<TokenId> all = Tokens(Run(Bound(0, 'q', "the the[m-q]")).sequences[0]);
  EXPECT_THAT(all, ElementsAre('t'));
  for (int i = 0; i < 3; ++i) all.push_back(Tokens(Decode(0, 1).sequences[0]).at(0));
  EXPECT_THAT(all, ElementsAre('t', 256, 257, 256)) << "in the tokenizer's spelling";
}

TEST_F(GrammarStateTest, AForcedTextEndsAtTheLengthAndBeforeAStopToken) {
  grammars_.Open();
  Force(local_, &grammars_.cache());
  StepPlan prompt = Bound(0, 'q', "abcdefgh");
  prompt.starts[0].max_new_tokens = 4;
  Run(prompt);
  StepResult result = Decode(0, 16);
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('b', 'c', 'd'));
  EXPECT_EQ(result.sequences[0].finish, ShardFinish::kLength);
  EXPECT_EQ(result.sequences[0].committed_length, 4u);

  prompt = Bound(1, 'q', "abcdefgh");
  prompt.starts[0].stop_token_ids = {'d'};
  Run(prompt);
  result = Decode(1, 16);
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('b', 'c', 'd'));
  EXPECT_THAT(ForcedOf(result.sequences[0]), ElementsAre(true, true, false));
  EXPECT_EQ(result.sequences[0].finish, ShardFinish::kStopToken);
}

TEST_F(GrammarStateTest, BadWordsAreSpelledByTheModel) {
  grammars_.Open();
  Force(local_, &grammars_.cache());
  StepPlan prompt = Bound(0, 'q', "the");
  prompt.starts[0].sampling.bad_words = {{256}};
  Run(prompt);
  EXPECT_THAT(Tokens(Decode(0, 4).sequences[0]), ElementsAre('h'));
}

TEST_F(GrammarStateTest, ARestartedSequenceContinuesItsForcedText) {
  grammars_.Open();
  Force(local_, &grammars_.cache());
  StepPlan again = Bound(1, 'q', "ab[m-q]");
  again.starts[0].prompt = {'q', 'a'};  // restarted after its first token
  again.starts[0].prompt_length = 2;
  again.starts[0].sample_index_base = 1;
  again.segments[0].count = 2;
  EXPECT_THAT(Tokens(Run(again).sequences[0]), ElementsAre('b')) << "it continues alike";
}

TEST_F(GrammarStateTest, OtherRanksAppendTheForcedTokensOfRank0) {
  FollowingCommunicator follower;
  Force(follower, nullptr);
  follower.tokens = {{'a'}, {'b', 'c', kNotSelected}, {'m'}, {kNotSelected}, {'n'}};
  EXPECT_THAT(Tokens(Run(Bound(0, 'q', "abc[m-q]+")).sequences[0]), ElementsAre('a'));
  StepResult result = Decode(0, 4);
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('b', 'c', 'm'));
  EXPECT_EQ(result.sequences[0].committed_length, 4u);
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre('a', 'b', 'c'));
  result = Decode(0, 2);
  EXPECT_THAT(Tokens(result.sequences[0]), ElementsAre('n'));
  EXPECT_THAT(backend_.batches.back().tokens, ElementsAre('m'));
}

TEST_F(GrammarStateTest, WithoutAGrammarRank0MustSelectAToken) {
  FollowingCommunicator follower;
  Use(follower, nullptr);
  follower.tokens = {{kNotSelected}};
  EXPECT_TRUE(absl::IsInternal(executor_->Execute(Whole(Start(0, {1}))).status()));
}

}  // namespace
}  // namespace penstock::shard
