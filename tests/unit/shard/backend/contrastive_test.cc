// Contrastive search from plans to tokens on the demo model and on each backend: against HF
// transformers (tests/data/goldens/contrastive.json), against recomputing everything for each
// candidate, and against itself in other batches, chunks, blocks, threads and worlds.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <cmath>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>

#include "shard/executor/model_executor.h"
#include "tests/unit/shard/backend/model_runner.h"
#include "tests/unit/support/paths.h"

namespace penstock::shard {
namespace {

struct Ask {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  std::uint32_t max_new_tokens = 48;
  std::uint32_t chunk = 128;   // of its prompt
  std::uint32_t joins_at = 0;  // step
  bool ignore_eos = false;
};

struct Answer {
  std::vector<TokenId> ids;
  std::vector<float> logprobs;
  friend bool operator==(const Answer&, const Answer&) = default;
};

SamplingParams Contrastive(float alpha, std::uint32_t k) {
  SamplingParams sampling;
  sampling.penalty_alpha = alpha;
  sampling.top_k = k;
  return sampling;
}

struct GoldenRun {
  SamplingParams sampling;
  std::vector<TokenId> ids;
};
struct GoldenCase {
  std::string name;
  std::vector<TokenId> prompt;
  std::vector<GoldenRun> runs;
};

std::vector<GoldenCase> ReadGoldens() {
  std::ifstream file(testing_support::SourcePath("tests/data/goldens/contrastive.json"));
  std::stringstream text;
  text << file.rdbuf();
  std::vector<GoldenCase> cases;
  const boost::json::value root = boost::json::parse(text.str());
  for (const auto& item : root.at("cases").as_array()) {
    GoldenCase one{boost::json::value_to<std::string>(item.at("name")),
                   boost::json::value_to<std::vector<TokenId>>(item.at("ids")),
                   {}};
    for (const auto& run : item.at("runs").as_array()) {
      SamplingParams sampling = Contrastive(run.at("penalty_alpha").to_number<float>(),
                                            run.at("top_k").to_number<std::uint32_t>());
      sampling.repetition_penalty = run.at("repetition_penalty").to_number<float>();
      one.runs.push_back({sampling, boost::json::value_to<std::vector<TokenId>>(run.at("ids"))});
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

// Makes the plans that a scheduler would make for some requests, one slot each.
class Batch {
 public:
  Batch(ModelRunner& runner, std::vector<Ask> asks) : runner_(runner), asks_(std::move(asks)) {
    ExecutorOptions options;
    options.slots = ModelRunner::kSequences;
    options.vocabulary = runner.model().spec.vocabulary;
    options.eos_token_ids = runner.model().spec.eos_token_ids;
    options.max_logit_rows = 8;
    executor_ = std::make_unique<ModelExecutor>(options, runner.backend(), runner.communicator());
    states_.resize(asks_.size());
    answers_.resize(asks_.size());
  }

  std::vector<Answer> Run() {
    for (std::uint32_t step = 1; step < 400; ++step) {
      StepPlan plan;
      plan.step = StepId(step);
      bool waiting = false;
      for (std::uint32_t i = 0; i < asks_.size(); ++i) {
        waiting = waiting || asks_[i].joins_at >= step;
        if (asks_[i].joins_at < step && !states_[i].finished) Plan(i, plan);
      }
      if (plan.segments.empty() && !waiting) return answers_;
      if (!plan.segments.empty()) Execute(plan);
    }
    ADD_FAILURE() << "the batch does not end";
    return answers_;
  }

 private:
  struct State {
    bool started = false;
    bool finished = false;
    std::uint32_t computed = 0;
  };

  void Plan(std::uint32_t i, StepPlan& plan) {
    const Ask& ask = asks_[i];
    State& state = states_[i];
    const auto length = static_cast<std::uint32_t>(ask.prompt.size());
    if (!state.started) Start(i, plan);
    Segment segment;
    segment.slot = SlotId(i);
    if (state.computed < length) {
      segment.kind = Segment::Kind::kPrompt;
      segment.first = state.computed;
      segment.count = std::min(ask.chunk, length - state.computed);
      state.computed += segment.count;
      if (state.computed == length) segment.logits = Segment::Logits::kLast;
    } else {
      segment.max_rows = std::max(1u, ask.sampling.Candidates());
    }
    plan.segments.push_back(segment);
  }

  void Start(std::uint32_t i, StepPlan& plan) {
    states_[i].started = true;
    SequenceStart start;
    start.slot = SlotId(i);
    start.sequence = SequenceId(i + 1);
    start.prompt = asks_[i].prompt;
    start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
    start.sampling = asks_[i].sampling;
    start.logprobs.kind = LogprobRequest::Kind::kProcessed;
    start.max_new_tokens = asks_[i].max_new_tokens;
    start.ignore_eos = asks_[i].ignore_eos;
    plan.starts.push_back(start);
    for (const BlockId block : runner_.table(static_cast<int>(i))) {
      BlockOp op;
      op.slot = SlotId(i);
      op.dst = block;
      plan.block_ops.push_back(op);
    }
  }

  void Execute(const StepPlan& plan) {
    const auto result = executor_->Execute(plan);
    ASSERT_TRUE(result.ok()) << result.status();
    for (const SequenceResult& part : result->sequences) {
      EXPECT_EQ(part.error, "");
      Answer& answer = answers_[part.slot.value()];
      for (const SampledToken& token : part.tokens) {
        answer.ids.push_back(token.token);
        answer.logprobs.push_back(token.logprob);
      }
      states_[part.slot.value()].finished = part.finish != ShardFinish::kNone;
    }
  }

  ModelRunner& runner_;
  std::vector<Ask> asks_;
  std::unique_ptr<ModelExecutor> executor_;
  std::vector<State> states_;
  std::vector<Answer> answers_;
};

class ContrastiveSearch : public testing::TestWithParam<Runs> {
 protected:
  void SetUp() override {
    goldens_ = ReadGoldens();
    ASSERT_FALSE(goldens_.empty());
    options_.backend = GetParam();
    options_.folder = testing_support::SourcePath("demo/model");
    options_.dtype = DType::kFloat32;
    options_.max_candidate_rows = 64;
    options_.max_step_tokens = 512;
  }

  std::vector<Answer> Run(std::vector<Ask> asks) { return Run(options_, std::move(asks)); }
  static std::vector<Answer> Run(const RunnerOptions& options, std::vector<Ask> asks) {
    auto runner = ModelRunner::Open(options);
    if (runner == nullptr) return {};
    return Batch(*runner, std::move(asks)).Run();
  }

  // Greedy, seeded sampling and two contrastive searches with prompts of their own.
  std::vector<Ask> Mixed() const {
    std::vector<Ask> asks;
    const std::vector<SamplingParams> how = {SamplingParams(), Seeded(), Contrastive(0.6f, 4),
                                             Contrastive(0.3f, 8)};
    for (std::size_t i = 0; i < how.size(); ++i) asks.push_back({Prompt(i + 1), how[i]});
    return asks;
  }
  static SamplingParams Seeded() {
    SamplingParams sampling;
    sampling.do_sample = true;
    sampling.seed = 42;
    sampling.top_k = 40;
    return sampling;
  }
  const std::vector<TokenId>& Prompt(std::size_t i) const {
    return goldens_[i % goldens_.size()].prompt;
  }
  const std::vector<TokenId>& LongPrompt() const {
    const auto size = [](const GoldenCase& one) { return one.prompt.size(); };
    return std::ranges::max_element(goldens_, {}, size)->prompt;
  }
  // Equal bits on the cpu backend; the reference backend promises equal tokens.
  static void ExpectSame(const Answer& a, const Answer& b) {
    EXPECT_EQ(a.ids, b.ids);
    if (GetParam() == Runs::kCpu) {
      EXPECT_EQ(a.logprobs, b.logprobs);
    }
  }

  RunnerOptions options_;
  std::vector<GoldenCase> goldens_;
};

TEST_P(ContrastiveSearch, GivesTheIdsOfTransformers) {
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  for (std::size_t i = 0; i < goldens_.size(); ++i) {
    // The reference backend takes its time: every third case, with the longest among them.
    if (GetParam() == Runs::kReference && i % 3 != 2) continue;
    const GoldenCase& one = goldens_[i];
    for (const GoldenRun& run : one.runs) {
      const auto answers = Batch(*runner, {{one.prompt, run.sampling}}).Run();
      EXPECT_EQ(answers.at(0).ids, run.ids) << one.name << ", alpha " << run.sampling.penalty_alpha
                                            << ", penalty " << run.sampling.repetition_penalty;
    }
  }
}

TEST_P(ContrastiveSearch, DoesNotDependOnOtherSequences) {
  const std::vector<Ask> asks = Mixed();
  std::vector<Ask> late = asks;
  for (std::uint32_t i = 0; i < late.size(); ++i) late[i].joins_at = 3 * (3 - i);
  const auto together = Run(asks);
  const auto one_by_one = Run(late);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    SCOPED_TRACE(i);
    const Answer alone = Run({asks[i]}).at(0);
    ExpectSame(together[i], alone);
    ExpectSame(one_by_one[i], alone);
    EXPECT_GT(alone.ids.size(), 4u);
  }
}

TEST_P(ContrastiveSearch, AlphaZeroAndOneCandidateAreGreedy) {
  const Answer greedy = Run({{Prompt(0), SamplingParams()}}).at(0);
  ExpectSame(Run({{Prompt(0), Contrastive(0.0f, 4)}}).at(0), greedy);
  ExpectSame(Run({{Prompt(0), Contrastive(0.6f, 1)}}).at(0), greedy);
  // By way of candidates as well: so little weight that the penalty never decides.
  ExpectSame(Run({{Prompt(0), Contrastive(1e-20f, 5)}}).at(0), greedy);
}

TEST_P(ContrastiveSearch, DoesNotDependOnChunksAndBlocks) {
  const Ask whole{LongPrompt(), Contrastive(0.6f, 4), 40};
  const Answer expected = Run({whole}).at(0);
  for (const std::uint32_t chunk : {7u, 16u}) {
    Ask chunked = whole;
    chunked.chunk = chunk;
    SCOPED_TRACE(chunk);
    ExpectSame(Run({chunked}).at(0), expected);
  }
  RunnerOptions blocks = options_;
  for (const std::uint32_t size : {4u, 32u}) {
    blocks.block_size = size;
    SCOPED_TRACE(size);
    ExpectSame(Run(blocks, {whole}).at(0), expected);
  }
}

// A preempted sequence restarts with its output as part of its prompt.
TEST_P(ContrastiveSearch, ARestartGivesTheSameTokens) {
  const Answer expected = Run({{Prompt(1), Contrastive(0.3f, 8), 24, 128, 0, true}}).at(0);
  ASSERT_EQ(expected.ids.size(), 24u);
  for (const std::size_t said : {1u, 5u, 12u}) {
    std::vector<TokenId> prompt = Prompt(1);
    prompt.insert(prompt.end(), expected.ids.begin(), expected.ids.begin() + said);
    const auto rest = static_cast<std::uint32_t>(24 - said);
    const Answer answer = Run({{prompt, Contrastive(0.3f, 8), rest, 16, 0, true}}).at(0);
    EXPECT_EQ(answer.ids, std::vector<TokenId>(expected.ids.begin() + said, expected.ids.end()));
  }
}

// Recomputes the whole text for each candidate, without a cache.
TEST_P(ContrastiveSearch, EqualsRecomputingEverything) {
  constexpr float kAlpha = 0.5f;
  constexpr std::uint32_t kCandidates = 6;
  const Answer answer = Run({{Prompt(0), Contrastive(kAlpha, kCandidates), 12}}).at(0);
  auto runner = ModelRunner::Open(options_);
  ASSERT_NE(runner, nullptr);
  std::vector<TokenId> text = Prompt(0);
  for (const TokenId expected : answer.ids) {
    runner->Reset(0);
    const std::vector<float> logits = runner->Prefill(0, text, 128);
    std::vector<TokenId> order(logits.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
    std::partial_sort(order.begin(), order.begin() + kCandidates, order.end(),
                      [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit} - logits[order[0]]);
    TokenId winner = -1;
    double best = -10;
    for (std::uint32_t i = 0; i < kCandidates; ++i) {
      runner->Reset(0);
      runner->Prefill(0, text, 128);
      const TokenId token = order[i];
      RaggedSegment segment{0, 1, static_cast<std::uint32_t>(text.size()), runner->table(0), true};
      const std::uint32_t row = 0;
      float cosine = 0;
      ASSERT_TRUE(runner->backend().Execute({{&token, 1}, {&segment, 1}, {&row, 1}}).ok());
      ASSERT_TRUE(runner->backend().Similarities(0, {&cosine, 1}).ok());
      const double p = std::exp(double{logits[token]} - logits[order[0]]) / sum;
      const double score = (1 - kAlpha) * p - kAlpha * cosine;
      if (score > best) winner = token;
      best = std::max(best, score);
    }
    EXPECT_EQ(winner, expected);
    text.push_back(expected);
  }
}

TEST_P(ContrastiveSearch, DoesNotDependOnThreads) {
  const std::vector<Ask> asks = Mixed();
  const auto expected = Run(asks);
  RunnerOptions threads = options_;
  threads.cpu_threads = 3;
  const auto answers = Run(threads, asks);
  for (std::size_t i = 0; i < asks.size(); ++i) ExpectSame(answers.at(i), expected[i]);
}

TEST_P(ContrastiveSearch, TwoRanksGiveTheSame) {
  const std::vector<Ask> asks = Mixed();
  const auto expected = Run(asks);
  std::mutex mutex;
  OnRanks(options_, 2, [&](ModelRunner& runner) {
    const auto answers = Batch(runner, asks).Run();
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < asks.size(); ++i) EXPECT_EQ(answers[i].ids, expected[i].ids);
  });
}

TEST_P(ContrastiveSearch, WorksInBFloat16InAnyBatch) {
  options_.dtype = DType::kBFloat16;
  const std::vector<Ask> asks = Mixed();
  const auto together = Run(asks);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    if (GetParam() == Runs::kCpu) ExpectSame(together[i], Run({asks[i]}).at(0));
    EXPECT_FALSE(together[i].ids.empty());
  }
}

// On this backend the chosen candidate has the bits of a plain decode.
TEST(ContrastiveOnCpu, TheChosenCandidateHasTheLogitsOfADecode) {
  for (const auto& [dtype, kv_type] : {std::pair{DType::kFloat32, KvType::kAuto},
                                       {DType::kBFloat16, KvType::kAuto},
                                       {DType::kBFloat16, KvType::kInt8},
                                       {DType::kFloat32, KvType::kBFloat16}}) {
    RunnerOptions options;
    options.kv_type = kv_type;
    options.backend = Runs::kCpu;
    options.folder = testing_support::SourcePath("demo/model");
    options.dtype = dtype;
    options.max_candidate_rows = 64;
    auto runner = ModelRunner::Open(options);
    ASSERT_NE(runner, nullptr);
    std::vector<TokenId> text;
    for (TokenId i = 0; i < 37; ++i) text.push_back(10 + i * 7);
    // Odd and even lengths: in bfloat16 positions lie in pairs. Several partitions of 256 as well.
    for (const std::size_t length : {1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u}) {
      std::vector<TokenId> prompt;
      for (std::size_t i = 0; i < length; ++i) prompt.push_back(text[i % text.size()]);
      runner->Reset(0);
      runner->Reset(1);
      runner->Prefill(0, prompt, 128);
      runner->Prefill(1, prompt, 128);
      std::vector<std::vector<float>> plain;
      for (const TokenId next : {5, 6, 7}) plain = runner->Step({{0, {next}}});

      for (const TokenId next : {5, 6, 7}) {
        const auto context =
            static_cast<std::uint32_t>(length) + static_cast<std::uint32_t>(next) - 5;
        const std::vector<TokenId> rows = {90, 91, next, 92, 93, 94, 95, 96, 97};
        RaggedSegment segment{0, 9, context, runner->table(1), true};
        const std::uint32_t row = 0;
        const CandidateChoice choice{0, 2};
        ASSERT_TRUE(runner->backend().Execute({rows, {&segment, 1}, {&row, 1}}).ok());
        ASSERT_TRUE(runner->backend().CommitCandidates({&choice, 1}).ok());
      }
      const auto view = runner->backend().Logits(0, 1);
      ASSERT_TRUE(view.ok());
      const auto* data = static_cast<const float*>(view->data);
      EXPECT_EQ(std::vector<float>(data, data + plain[0].size()), plain[0]) << length;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ContrastiveSearch, testing::Values(Runs::kReference, Runs::kCpu),
                         BackendName);

}  // namespace
}  // namespace penstock::shard
