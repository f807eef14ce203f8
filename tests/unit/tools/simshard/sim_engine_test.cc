#include "tools/simshard/sim_engine.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "common/status.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::simshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Blocks of four tokens. Plans are those of a correct scheduler, unless a test breaks one.
class SimEngineTest : public testing::Test {
 protected:
  void Start(SimOptions options) {
    options.block_size = 4;
    options.blocks = 8;
    options.vocabulary = 50;
    engine_ = std::make_unique<SimEngine>(options);
    ASSERT_EQ(Message(engine_->Load([](const v1::LoadProgress&) {})), "");
    v1::ConfigureRequest setup;
    setup.set_world_size(1);
    setup.mutable_limits()->set_max_step_tokens(16);
    setup.mutable_limits()->set_max_sequences(2);
    setup.mutable_limits()->set_max_sequence_length(32);
    setup.mutable_limits()->set_window_tables(true);
    ASSERT_EQ(Message(engine_->Configure(setup)), "");
    ASSERT_EQ(engine_->Warmup()->blocks(0), 8u);
    ASSERT_TRUE(engine_->Commit({{8, 2}, 0}).ok());
  }

  static SimOptions Echo() {
    SimOptions options;
    options.tokens = TokenRule::kEcho;
    return options;
  }

  StepPlan NextPlan() {
    StepPlan plan;
    plan.step = StepId(++step_);
    return plan;
  }
  StepPlan StartPlan(std::vector<TokenId> prompt, std::vector<std::uint32_t> blocks,
                     std::uint32_t slot = 0) {
    StepPlan plan = NextPlan();
    SequenceStart start;
    start.slot = SlotId(slot);
    start.sequence = SequenceId(100 + slot);
    start.prompt = std::move(prompt);
    start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
    for (std::uint32_t block : blocks) {
      BlockOp op;
      op.slot = SlotId(slot);
      op.dst = BlockId(block);
      plan.block_ops.push_back(op);
    }
    Segment segment;
    segment.kind = Segment::Kind::kPrompt;
    segment.slot = SlotId(slot);
    segment.count = start.prompt_length;
    segment.logits = Segment::Logits::kLast;
    plan.segments = {segment};
    plan.starts = {std::move(start)};
    return plan;
  }
  StepPlan DecodePlan(std::uint32_t slot = 0) {
    StepPlan plan = NextPlan();
    Segment segment;
    segment.slot = SlotId(slot);
    plan.segments = {segment};
    return plan;
  }
  SequenceResult Run(const StepPlan& plan) {
    auto result = engine_->Execute(plan);
    EXPECT_EQ(Message(result.status()), "");
    if (!result.ok() || result->sequences.empty()) return {};
    return result->sequences.front();
  }

  std::unique_ptr<SimEngine> engine_;
  std::uint64_t step_ = 0;
};

TEST_F(SimEngineTest, EchoesThePromptAndEnds) {
  Start(Echo());
  SequenceResult result = Run(StartPlan({1, 10, 11}, {0, 1}));
  EXPECT_EQ(result.tokens.front().token, 10);
  EXPECT_EQ(result.committed_length, 3u);
  result = Run(DecodePlan());
  EXPECT_EQ(result.tokens.front().token, 11);
  EXPECT_EQ(result.committed_length, 4u);
  EXPECT_EQ(result.finish, ShardFinish::kNone);
  result = Run(DecodePlan());
  EXPECT_EQ(result.tokens.front().token, 2);
  EXPECT_EQ(result.finish, ShardFinish::kEos);
}

// Blocks of four tokens and a window of five.
class SimulatedWindow : public SimEngineTest {
 protected:
  SimulatedWindow() {
    options_.window = 5;
    options_.window_blocks = 2;
    options_.die = [this](const std::string& why) { died_ = why; };
    Start(options_);
  }
  // A prompt in chunks of four, which have the two blocks in turn.
  void ComputeTwelve() {
    StepPlan plan = StartPlan(std::vector<TokenId>(12, 7), {0, 1, 2});
    for (const std::uint32_t first : {0u, 4u, 8u}) {
      plan.block_ops.push_back(InWindow(first / 4 % 2));
      plan.segments[0].first = first;
      plan.segments[0].count = 4;
      plan.segments[0].logits = first == 8 ? Segment::Logits::kLast : Segment::Logits::kNone;
      Run(plan);
      plan = NextPlan();
      plan.segments = {Segment{.kind = Segment::Kind::kPrompt, .slot = SlotId(0)}};
    }
  }
  static BlockOp InWindow(std::uint32_t block) {
    BlockOp op;
    op.kv_group = 1;
    op.slot = SlotId(0);
    op.dst = BlockId(block);
    return op;
  }
  SimOptions options_;
  std::string died_;
};

TEST_F(SimulatedWindow, IsAllThatItsLayersRead) {
  ComputeTwelve();
  EXPECT_EQ(died_, "");
}

TEST_F(SimulatedWindow, FindsABlockThatWasGivenAwayTooEarly) {
  ComputeTwelve();
  // Position 12 sees position 8, whose block it overwrites.
  StepPlan plan = DecodePlan();
  plan.block_ops = {InWindow(0)};
  BlockOp full = InWindow(3);
  full.kv_group = 0;
  plan.block_ops.push_back(full);
  EXPECT_FALSE(engine_->Execute(plan).ok());
  EXPECT_THAT(died_, HasSubstr("in block 0 of layers with a window"));
}

TEST_F(SimulatedWindow, IsInTheFacts) {
  const v1::DescribeResponse facts = engine_->Facts();
  ASSERT_EQ(facts.kv_groups_size(), 2);
  EXPECT_EQ(facts.kv_groups(0).window(), 0u);
  EXPECT_EQ(facts.kv_groups(1).window(), 5u);
  EXPECT_THAT(engine_->Warmup()->blocks(), ElementsAre(8, 2));
}

TEST_F(SimEngineTest, AFinishedSlotReportsNothing) {
  Start(Echo());
  ASSERT_EQ(Run(StartPlan({1}, {0})).finish, ShardFinish::kEos);
  auto result = engine_->Execute(DecodePlan());
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->sequences.empty());
}

TEST_F(SimEngineTest, FinishReasonsFollowTheirOrder) {
  Start(Echo());
  StepPlan plan = StartPlan({10}, {0});
  plan.starts[0].max_new_tokens = 1;
  plan.starts[0].stop_token_ids = {10};
  EXPECT_EQ(Run(plan).finish, ShardFinish::kLength);
  StepPlan again = StartPlan({11}, {1});
  again.ends = {SlotId(0)};
  again.starts[0].stop_token_ids = {11};
  EXPECT_EQ(Run(again).finish, ShardFinish::kStopToken);
}

TEST_F(SimEngineTest, EosIsMaskedBeforeMinNewTokens) {
  Start(Echo());
  StepPlan plan = StartPlan({10}, {0});
  plan.starts[0].min_new_tokens = 2;
  Run(plan);
  EXPECT_EQ(Run(DecodePlan()).finish, ShardFinish::kNone);
  EXPECT_EQ(Run(DecodePlan()).finish, ShardFinish::kEos);
}

TEST_F(SimEngineTest, LogprobsAndAlternativesFollowTheRule) {
  Start(Echo());
  StepPlan plan = StartPlan({10, 11, 12}, {0});
  plan.starts[0].logprobs = {LogprobRequest::Kind::kProcessed, 2, true};
  plan.segments[0].logits = Segment::Logits::kAll;
  const SequenceResult result = Run(plan);
  EXPECT_THAT(result.prompt_logprobs, ElementsAre(-0.5f, -0.75f));
  ASSERT_EQ(result.tokens.size(), 1u);
  EXPECT_EQ(result.tokens[0].logprob, -0.25f);
  EXPECT_THAT(result.tokens[0].alternatives,
              ElementsAre(TokenLogprob{10, -0.25f}, TokenLogprob{11, -1.25f}));
}

TEST_F(SimEngineTest, ABlockWithTwoWritersIsReported) {
  SimOptions options;
  std::string death;
  options.die = [&death](const std::string& why) { death = why; };
  Start(options);
  Run(StartPlan({10, 11}, {0, 1}));
  Run(StartPlan({20, 21}, {0, 2}, 1));  // block 0 again
  const auto result = engine_->Execute(DecodePlan(0));
  EXPECT_TRUE(absl::IsInternal(result.status()));
  EXPECT_THAT(death, HasSubstr("sequence 100 reads position 0 in block 0"));
}

TEST_F(SimEngineTest, AWrongCachedLengthIsReported) {
  SimOptions options;
  Start(options);
  StepPlan plan = StartPlan({10, 11, 12, 13, 14}, {3, 4});
  plan.starts[0].cached_length = 4;
  plan.segments[0].first = 4;
  plan.segments[0].count = 1;
  EXPECT_THAT(Message(engine_->Execute(plan).status()), HasSubstr("reads position 0 in block 3"));
}

TEST_F(SimEngineTest, AnExistingCachedPrefixIsAccepted) {
  Start({});
  Run(StartPlan({10, 11, 12, 13, 14}, {3, 4}));
  StepPlan plan = StartPlan({10, 11, 12, 13, 20}, {3, 5}, 1);
  plan.starts[0].cached_length = 4;
  plan.segments[0].first = 4;
  plan.segments[0].count = 1;
  EXPECT_EQ(Run(plan).committed_length, 5u);
}

TEST_F(SimEngineTest, CopiedBlocksHoldTheSamePrefix) {
  Start({});
  Run(StartPlan({10, 11, 12, 13, 14}, {3, 4}));
  StepPlan plan = StartPlan({10, 11, 12, 13, 20}, {5, 6}, 1);
  plan.starts[0].cached_length = 4;
  plan.segments[0].first = 4;
  plan.segments[0].count = 1;
  BlockOp copy;
  copy.kind = BlockOp::Kind::kCopy;
  copy.src = BlockId(3);
  copy.dst = BlockId(5);
  plan.block_ops.push_back(copy);
  EXPECT_EQ(Run(plan).committed_length, 5u);
}

TEST_F(SimEngineTest, FailsAtItsStep) {
  SimOptions options;
  options.fail_at_step = 2;
  Start(options);
  Run(StartPlan({10, 11}, {0}));
  EXPECT_THAT(Message(engine_->Execute(DecodePlan()).status()), HasSubstr("failing at step 2"));
}

TEST_F(SimEngineTest, AHangEndsByInterrupt) {
  SimOptions options;
  options.hang_at_step = 1;
  Start(options);
  const StepPlan plan = StartPlan({10, 11}, {0});
  std::thread other([this] { engine_->Interrupt(); });
  EXPECT_TRUE(absl::IsCancelled(engine_->Execute(plan).status()));
  other.join();
}

TEST_F(SimEngineTest, AStepTakesItsTime) {
  SimOptions options;
  options.step_time = std::chrono::milliseconds(20);
  options.token_time = std::chrono::milliseconds(5);
  Start(options);
  const Time begin = SteadyNow();
  Run(StartPlan({10, 11}, {0}));
  EXPECT_GE(SteadyNow() - begin, std::chrono::milliseconds(30));
}

class ModelFolderTest : public testing::Test {
 protected:
  void Write(const char* name, const char* text) { temporary_.Write(name, text); }

  const TempFolder temporary_;
  const std::string& folder_ = temporary_.path();
};

constexpr const char* kTokenizer = R"({"model": {"vocab": {"a": 0, "b": 1, "<e>": 3}},
  "added_tokens": [{"id": 3, "content": "<e>", "special": true},
                   {"id": 4, "content": "plain", "special": false}]})";

TEST_F(ModelFolderTest, TakesVocabularyEndAndSpecials) {
  Write("tokenizer.json", kTokenizer);
  Write("config.json", R"({"vocab_size": 8, "eos_token_id": [1, 3], "model_type": "llama",
                           "max_position_embeddings": 77})");
  const auto facts = ReadModelFacts(folder_);
  ASSERT_EQ(Message(facts.status()), "");
  EXPECT_EQ(facts->vocabulary, 8u);
  EXPECT_EQ(facts->max_position, 77u);
  EXPECT_THAT(facts->eos_token_ids, ElementsAre(1, 3));
  EXPECT_THAT(facts->regular, ElementsAre(0, 4));
}

TEST_F(ModelFolderTest, GenerationConfigAndTheEndTokensTextCount) {
  Write("tokenizer.json", kTokenizer);
  Write("tokenizer_config.json", R"({"eos_token": {"content": "<e>"}})");
  EXPECT_THAT(ReadModelFacts(folder_)->eos_token_ids, ElementsAre(3));
  Write("config.json", R"({"vocab_size": 8, "eos_token_id": 1})");
  Write("generation_config.json", R"({"eos_token_id": 0})");
  EXPECT_THAT(ReadModelFacts(folder_)->eos_token_ids, ElementsAre(0));
}

TEST_F(ModelFolderTest, ErrorsNameTheFile) {
  EXPECT_THAT(Message(ReadModelFacts(folder_).status()), HasSubstr("tokenizer.json"));
  Write("tokenizer.json", "{");
  EXPECT_THAT(Message(ReadModelFacts(folder_).status()), HasSubstr("tokenizer.json is not a JSON"));
  Write("tokenizer.json", kTokenizer);
  EXPECT_THAT(Message(ReadModelFacts(folder_).status()), HasSubstr("eos_token_id"));
}

}  // namespace
}  // namespace penstock::simshard
