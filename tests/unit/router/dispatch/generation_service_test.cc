// GenerationService over simulated shards: requests in, text events out.
#include "router/dispatch/generation_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/service/shard_server.h"
#include "tests/unit/support/paths.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/simshard/sim_engine.h"

namespace penstock::router {
namespace {

using simshard::SimOptions;
using testing::HasSubstr;

constexpr auto kDeadline = std::chrono::seconds(30);
const std::string kModel = testing_support::SourcePath("demo/model");

// Keeps the events of one request. May refuse after a number of tokens, as a slow client does.
class Sink final : public GenerationSink {
 public:
  explicit Sink(std::size_t refuse_after = SIZE_MAX) : refuse_after_(refuse_after) {}

  bool OnEvents(std::vector<GenerationEvent> events) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(refused_) << "an event after a refusal";
    const bool ends = std::holds_alternative<GenerationEnd>(events.back());
    EXPECT_TRUE(!ends || events.size() >= 2) << "the last token comes with the end";
    ++turns_;
    for (GenerationEvent& event : events) Take(std::move(event));
    refused_ = tokens_.size() >= refuse_after_;
    changed_.notify_all();
    return !refused_;
  }

  bool WaitUntil(const std::function<bool(const Sink&)>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return condition(*this); });
  }
  bool WaitForEnd() {
    return WaitUntil([](const Sink& s) { return s.end_.has_value() || s.error_.has_value(); });
  }

  // After WaitForEnd, or inside a condition.
  std::string deltas_;
  std::vector<GenerationToken> tokens_;
  std::optional<GenerationStart> start_;
  std::optional<GenerationEnd> end_;
  std::optional<GenerationError> error_;
  std::size_t turns_ = 0;  // calls of OnEvents

 private:
  void Take(GenerationEvent event) {
    EXPECT_FALSE(end_ || error_) << "an event after the terminal one";
    if (auto* start = std::get_if<GenerationStart>(&event)) {
      EXPECT_FALSE(start_);
      start_ = std::move(*start);
    } else if (auto* token = std::get_if<GenerationToken>(&event)) {
      EXPECT_TRUE(start_);
      EXPECT_EQ(token->index, tokens_.size());
      deltas_ += token->delta;
      tokens_.push_back(std::move(*token));
    } else if (auto* end = std::get_if<GenerationEnd>(&event)) {
      deltas_ += end->tail;
      end_ = std::move(*end);
    } else {
      error_ = std::get<GenerationError>(std::move(event));
    }
  }

  const std::size_t refuse_after_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool refused_ = false;
};

class GenerationServiceTest : public testing::Test {
 protected:
  const TempFolder folder_;  // outlives what listens in it

  void SetUp() override {
    auto tokenizer = text::Tokenizer::Load(kModel);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    tokenizer_ = *tokenizer;
  }
  void TearDown() override {
    engine_.reset();
    server_.reset();
  }

  void Start(SimOptions shard, scheduler::Config config = {}) {
    shard.model_folder = kModel;
    shard::ShardServerOptions server;
    server.listen.socket_prefix = folder_ / "shard";
    auto started =
        shard::ShardServer::Start(std::make_unique<simshard::SimEngine>(shard), std::move(server));
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);

    GroupLinkOptions link_options;
    link_options.sockets = {server_->address()};
    link_options.rendezvous = "penstock-router-engine-test";
    link_options.startup_timeout = kDeadline;
    auto link = GroupLink::Form(link_options, metrics_);
    ASSERT_TRUE(link.ok()) << link.status();

    GenerationServiceOptions options;
    options.core.scheduler = config;
    options.text_threads = text_threads_;
    options.stream_interval = stream_interval_;
    options.core.step_timeout = std::chrono::milliseconds(500);
    options.facts.max_total_tokens = 256;
    options.facts.max_input_tokens = 255;
    options.facts.vocabulary = (*link)->formed().facts.vocabulary;
    options.eos_ids = (*link)->formed().facts.eos_token_ids;
    options.tokenizer = tokenizer_;
    engine_ = std::make_unique<GenerationService>(std::move(options), metrics_);
    ASSERT_EQ(Message(engine_->Start([this](LostGroup lost) {
                const std::lock_guard lock(mutex_);
                lost_ = lost.reason;
                changed_.notify_all();
              })),
              "");
    engine_->Attach(*std::move(link));
  }

  static GenerationRequest Request(std::string prompt, std::uint32_t max_new) {
    GenerationRequest request;
    request.client_id = prompt;
    request.prompt = std::move(prompt);
    request.max_new_tokens = max_new;
    return request;
  }
  std::shared_ptr<Sink> Submit(GenerationRequest request, std::size_t refuse_after = SIZE_MAX) {
    auto sink = std::make_shared<Sink>(refuse_after);
    last_ = engine_->Submit(std::move(request), sink);
    return sink;
  }
  bool WaitForLoss() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [this] { return lost_.has_value(); });
  }
  // A later request ends after everything before it has reached the core: there is one text thread.
  void Settle() { ASSERT_TRUE(Submit(Request("settle", 1))->WaitForEnd()); }
  std::string StateOf(const std::string& id) {
    return engine_->Explain(id, "").value_or(RequestRecord{}).state;
  }

  Duration stream_interval_{0};
  std::uint32_t text_threads_ = 1;  // one: requests reach the core in order, see Settle
  Metrics metrics_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::unique_ptr<shard::ShardServer> server_;
  std::unique_ptr<GenerationService> engine_;
  RequestId last_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> lost_;
};

SimOptions Echo() {
  SimOptions options;
  options.tokens = simshard::TokenRule::kEcho;
  return options;
}

SimOptions Slow() {
  SimOptions options;
  options.step_time = std::chrono::milliseconds(2);
  return options;
}

TEST_F(GenerationServiceTest, TokensOfShortStepsAreCoalesced) {
  stream_interval_ = std::chrono::seconds(1);
  Start(Echo());
  const std::string prompt =
      "Once upon a time there was a small dog. It had a red ball, and a bone.";
  const auto sink = Submit(Request(prompt, 200));
  ASSERT_TRUE(sink->WaitUntil([](const Sink& s) { return !s.tokens_.empty(); }));
  ASSERT_TRUE(sink->WaitForEnd());
  ASSERT_TRUE(sink->end_);
  EXPECT_EQ(sink->deltas_, prompt);
  EXPECT_GT(sink->tokens_.size(), 12U);
  EXPECT_LT(sink->turns_, sink->tokens_.size() / 2) << "beginning, middle and end";
}

TEST_F(GenerationServiceTest, AnEchoedPromptIsTheText) {
  Start(Echo());
  const std::string prompt = "Once upon a time there was a small dog.";
  const auto sink = Submit(Request(prompt, 200));
  ASSERT_TRUE(sink->WaitForEnd());
  ASSERT_TRUE(sink->end_) << sink->error_->message;
  EXPECT_EQ(sink->end_->reason, FinishReason::kEos);
  EXPECT_EQ(sink->end_->text, prompt);
  EXPECT_EQ(sink->deltas_, prompt);
  EXPECT_EQ(sink->end_->generated_tokens, sink->tokens_.size());
  EXPECT_EQ(sink->end_->prompt_tokens, sink->start_->prompt_tokens);
  EXPECT_FALSE(sink->end_->sampled);
  EXPECT_GE(sink->end_->timings.total, sink->end_->timings.first_token);
}

TEST_F(GenerationServiceTest, ManyRequestsGetTheirOwnText) {
  text_threads_ = 4;
  Start(Echo());
  std::vector<std::pair<std::string, std::shared_ptr<Sink>>> open;
  for (int i = 0; i < 100; ++i) {
    std::string prompt = "The dog number " + std::to_string(i) + " ran to the tree.";
    auto sink = Submit(Request(prompt, 150));
    open.emplace_back(std::move(prompt), std::move(sink));
  }
  for (const auto& [prompt, sink] : open) {
    ASSERT_TRUE(sink->WaitForEnd());
    ASSERT_TRUE(sink->end_) << sink->error_->message;
    EXPECT_EQ(sink->deltas_, prompt);
  }
}

TEST_F(GenerationServiceTest, AStopStringEndsTheTextBeforeIt) {
  Start(Echo());
  GenerationRequest request = Request("Tom saw a cat and a small dog.", 100);
  request.stop = {"and a"};
  const auto sink = Submit(std::move(request));
  ASSERT_TRUE(sink->WaitForEnd());
  ASSERT_TRUE(sink->end_);
  EXPECT_EQ(sink->end_->reason, FinishReason::kStopString);
  EXPECT_EQ(sink->deltas_, "Tom saw a cat ");
  EXPECT_EQ(sink->end_->stop, "and a");
}

TEST_F(GenerationServiceTest, ACancelledRequestGetsNoEventAndIsRecordedAsCancelled) {
  Start(Slow());
  const auto sink = Submit(Request("a", 200));
  ASSERT_TRUE(sink->WaitUntil([](const Sink& s) { return s.tokens_.size() > 3; }));
  engine_->Cancel(last_);
  Settle();
  EXPECT_EQ(StateOf("a"), "cancelled");
  EXPECT_FALSE(sink->end_ || sink->error_);
}

TEST_F(GenerationServiceTest, ACancelRightAfterSubmitIsNotLost) {
  Start(Slow());
  for (int i = 0; i < 50; ++i) {
    Submit(Request("request " + std::to_string(i), 200));
    engine_->Cancel(last_);
  }
  Settle();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(StateOf("request " + std::to_string(i)), "cancelled") << i;
}

TEST_F(GenerationServiceTest, ARefusingSinkCancelsItsRequest) {
  Start(Slow());
  const auto sink = Submit(Request("slow client", 200), 5);
  ASSERT_TRUE(sink->WaitUntil([](const Sink& s) { return s.tokens_.size() >= 5; }));
  Settle();
  EXPECT_EQ(StateOf("slow client"), "cancelled");
}

TEST_F(GenerationServiceTest, ABadRequestIsRefusedWithItsField) {
  Start(Echo());
  const auto sink = Submit(Request("a b c", 400));
  ASSERT_TRUE(sink->WaitForEnd());
  ASSERT_TRUE(sink->error_);
  EXPECT_EQ(sink->error_->kind, ErrorKind::kValidation);
  EXPECT_EQ(StateOf("a b c"), "refused");
}

TEST_F(GenerationServiceTest, AFullQueueIsOverload) {
  scheduler::Config config;
  config.max_batch_size = 1;
  config.max_waiting_requests = 1;
  Start(Slow(), config);
  const auto running = Submit(Request("one", 200));
  ASSERT_TRUE(running->WaitUntil([](const Sink& s) { return !s.tokens_.empty(); }));
  Submit(Request("two", 200));
  const auto third = Submit(Request("three", 200));
  ASSERT_TRUE(third->WaitForEnd());
  ASSERT_TRUE(third->error_);
  EXPECT_EQ(third->error_->kind, ErrorKind::kOverloaded);
  EXPECT_EQ(StateOf("two"), "queued");
}

TEST_F(GenerationServiceTest, SampledRequestsGetASeedAndReportIt) {
  Start(Echo());
  GenerationRequest drawn = Request("a dog", 3);
  drawn.sampling.do_sample = true;
  GenerationRequest given = drawn;
  given.seed = 42;
  const auto first = Submit(drawn);
  const auto second = Submit(drawn);
  const auto third = Submit(given);
  ASSERT_TRUE(first->WaitForEnd() && second->WaitForEnd() && third->WaitForEnd());
  EXPECT_NE(first->end_->seed, second->end_->seed);
  EXPECT_EQ(third->end_->seed, 42u);
  EXPECT_TRUE(third->end_->sampled);
}

TEST_F(GenerationServiceTest, DrainRefusesNewRequestsAndEndsTheOthers) {
  Start(Slow());
  const auto open = Submit(Request("open", 40));
  ASSERT_TRUE(open->WaitUntil([](const Sink& s) { return !s.tokens_.empty(); }));
  engine_->Drain([] {});
  EXPECT_EQ(engine_->CheckHealth().state, Health::kDraining);
  const auto late = Submit(Request("late", 5));
  ASSERT_TRUE(late->WaitForEnd());
  ASSERT_TRUE(late->error_);
  EXPECT_EQ(late->error_->kind, ErrorKind::kDraining);
  ASSERT_TRUE(open->WaitForEnd());
  EXPECT_TRUE(open->end_) << open->error_->message;
}

// The launcher may see the end of a shard before the router does.
TEST_F(GenerationServiceTest, ADrainingServerSaysThatAShardWasLost) {
  SimOptions hangs = Slow();
  hangs.hang_at_step = 20;
  Start(hangs);
  const auto open = Submit(Request("open", 40));
  ASSERT_TRUE(open->WaitUntil([](const Sink& s) { return !s.tokens_.empty(); }));
  engine_->Drain([] {});
  ASSERT_TRUE(WaitForLoss());
  EXPECT_EQ(engine_->CheckHealth().state, Health::kDraining);
  EXPECT_THAT(engine_->CheckHealth().detail,
              HasSubstr("the server is shutting down: shard-0 has not answered"));
}

TEST_F(GenerationServiceTest, ALostGroupFailsEveryOpenRequestOnce) {
  SimOptions hangs = Slow();
  hangs.hang_at_step = 20;
  scheduler::Config config;
  config.max_batch_size = 1;
  Start(hangs, config);
  const auto running = Submit(Request("running", 200));
  ASSERT_TRUE(running->WaitUntil([](const Sink& s) { return !s.tokens_.empty(); }));
  const auto waiting = Submit(Request("waiting", 200));
  ASSERT_TRUE(WaitForLoss());
  EXPECT_EQ(engine_->CheckHealth().state, Health::kFailed);
  EXPECT_THAT(engine_->CheckHealth().detail, HasSubstr("shard-0 has not answered"));
  ASSERT_TRUE(running->WaitForEnd() && waiting->WaitForEnd());
  ASSERT_TRUE(running->error_ && waiting->error_);
  EXPECT_EQ(running->error_->kind, ErrorKind::kGeneration);
  EXPECT_EQ(waiting->error_->kind, ErrorKind::kUnavailable);
  const auto late = Submit(Request("late", 5));
  ASSERT_TRUE(late->WaitForEnd());
  EXPECT_EQ(late->error_->kind, ErrorKind::kUnavailable);
}

TEST_F(GenerationServiceTest, PromptLogprobsComeWithTheStart) {
  Start(Echo());
  GenerationRequest request = Request("a small dog", 3);
  request.logprobs = {LogprobRequest::Kind::kProcessed, 0, true};
  const auto sink = Submit(std::move(request));
  ASSERT_TRUE(sink->WaitForEnd());
  ASSERT_TRUE(sink->end_) << sink->error_->message;
  EXPECT_EQ(sink->start_->prompt.size(), sink->start_->prompt_tokens);
  EXPECT_FALSE(sink->start_->prompt.front().logprob) << "the first token has none";
  EXPECT_TRUE(sink->tokens_.front().token.logprob);
}

}  // namespace
}  // namespace penstock::router
