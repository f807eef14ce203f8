// The scheduler thread and its shard clients over real Unix sockets and simulated shards: the path
// of a plan and its result without HTTP and text.
#include "router/dispatch/core_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <sstream>

#include "common/status.h"
#include "router/dispatch/step_log.h"
#include "router/metrics/metrics.h"
#include "shard/service/shard_server.h"
#include "sim/replay.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/simshard/sim_engine.h"

namespace penstock::router {
namespace {

using scheduler::Arrival;
using simshard::SimOptions;
using testing::HasSubstr;

constexpr auto kDeadline = std::chrono::seconds(30);

// Records the core's events for each request. Waits with a deadline.
class Recorder final : public CoreListener {
 public:
  struct Story {
    std::vector<TokenId> tokens;
    std::optional<scheduler::Finished> finished;
    std::optional<scheduler::Failed> failed;
    bool ended() const { return finished.has_value() || failed.has_value(); }
  };

  void OnOutputs(std::span<scheduler::Event> events, std::span<const Decision> decisions) override {
    const std::lock_guard lock(mutex_);
    decisions_ += decisions.size();
    for (const scheduler::Event& event : events) Take(event);
    changed_.notify_all();
  }
  void OnGroupLost(LostGroup lost) override {
    const std::lock_guard lock(mutex_);
    lost_ = lost.reason;
    lost_groups_.push_back(std::move(lost));
    changed_.notify_all();
  }

  bool WaitUntil(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, condition);
  }
  bool WaitForEnd(std::uint64_t request) {
    return WaitUntil([&] { return stories_[RequestId(request)].ended(); });
  }
  Story StoryOf(std::uint64_t request) {
    const std::lock_guard lock(mutex_);
    return stories_[RequestId(request)];
  }
  // Between two calls that brought tokens.
  Duration LongestGap() {
    const std::lock_guard lock(mutex_);
    return longest_gap_;
  }
  std::string WaitForLoss() {
    return WaitUntil([&] { return lost_.has_value(); }) ? *lost_ : "(not lost)";
  }

  std::map<RequestId, Story> stories_;
  std::optional<std::string> lost_;
  std::vector<LostGroup> lost_groups_;

 private:
  void Take(const scheduler::Event& event) {
    Story& story = stories_[event.request];
    EXPECT_FALSE(story.ended()) << "an event after the terminal one";
    if (const auto* tokens = std::get_if<scheduler::Tokens>(&event.what)) {
      EXPECT_EQ(tokens->first_index, story.tokens.size());
      for (const SampledToken& token : tokens->tokens) story.tokens.push_back(token.token);
      const Time now = SteadyNow();
      if (last_tokens_) longest_gap_ = std::max(longest_gap_, now - *last_tokens_);
      last_tokens_ = now;
    } else if (const auto* finished = std::get_if<scheduler::Finished>(&event.what)) {
      story.finished = *finished;
    } else if (const auto* failed = std::get_if<scheduler::Failed>(&event.what)) {
      story.failed = *failed;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t decisions_ = 0;
  std::optional<Time> last_tokens_;
  Duration longest_gap_{0};
};

class CoreLoopTest : public testing::Test {
 protected:
  const TempFolder folder_;  // outlives what listens in it

  void TearDown() override {
    loop_.reset();
    servers_.clear();
  }

  void StartShards(std::uint32_t world, SimOptions options = {}) {
    options.world_size = world;
    for (options.rank = 0; options.rank < world; ++options.rank) StartShard(options);
  }

  std::string PrefixOf(GroupId group) const {
    return folder_ / "shard-" + std::to_string(group.value());
  }

  void StartShard(const SimOptions& options, GroupId group = GroupId(0)) {
    shard::ShardServerOptions server;
    server.listen.socket_prefix = PrefixOf(group);
    auto started = shard::ShardServer::Start(std::make_unique<simshard::SimEngine>(options),
                                             std::move(server));
    ASSERT_TRUE(started.ok()) << started.status();
    servers_.push_back(*std::move(started));
  }

  void StartLoop(CoreLoopOptions options = {}) {
    loop_ = std::make_unique<CoreLoop>(std::move(options), recorder_, metrics_);
    ASSERT_EQ(Message(loop_->Start()), "");
    GroupLinkOptions link_options;
    for (const auto& server : servers_) link_options.sockets.push_back(server->address());
    AttachGroup(std::move(link_options));
  }

  void AttachGroup(GroupLinkOptions link_options) {
    link_options.rendezvous = "penstock-core-loop-test";
    link_options.startup_timeout = kDeadline;
    auto link = GroupLink::Form(link_options, metrics_);
    ASSERT_TRUE(link.ok()) << link.status();
    loop_->Attach(*std::move(link));
  }

  // Two groups of two ranks; the ranks of group 1 hang at this step.
  void StartTwoGroups(std::uint64_t hang_at_step) {
    SimOptions options;
    options.world_size = 2;
    options.step_time = std::chrono::milliseconds(2);
    for (const GroupId group : {GroupId(0), GroupId(1)}) {
      options.hang_at_step = group == GroupId(1) ? hang_at_step : 0;
      for (options.rank = 0; options.rank < 2; ++options.rank) StartShard(options, group);
    }
    CoreLoopOptions loop;
    loop.step_timeout = std::chrono::milliseconds(300);
    loop.step_log = folder_ / "steps.jsonl";
    loop_ = std::make_unique<CoreLoop>(std::move(loop), recorder_, metrics_);
    ASSERT_EQ(Message(loop_->Start()), "");
    for (const GroupId group : {GroupId(0), GroupId(1)}) AttachGroup(LinkTo(group));
  }

  GroupLinkOptions LinkTo(GroupId group) const {
    GroupLinkOptions link;
    link.group = group;
    link.name = "group " + std::to_string(group.value());
    for (const char* rank : {"-0", "-1"}) link.sockets.push_back(PrefixOf(group) + rank);
    return link;
  }

  static Arrival Request(std::uint64_t id, std::uint32_t prompt, std::uint32_t max_new) {
    Arrival arrival;
    arrival.request = RequestId(id);
    for (std::uint32_t i = 0; i < prompt; ++i) {
      arrival.prompt.push_back(static_cast<TokenId>(100 + id + i));
    }
    arrival.max_new_tokens = max_new;
    arrival.ignore_eos = true;
    return arrival;
  }

  Metrics metrics_;
  Recorder recorder_;
  std::vector<std::unique_ptr<shard::ShardServer>> servers_;
  std::unique_ptr<CoreLoop> loop_;
};

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST_F(CoreLoopTest, TokensDoNotDependOnTheBatch) {
  StartShards(2);
  StartLoop();
  for (std::uint64_t id = 1; id <= 40; ++id) {
    ASSERT_TRUE(loop_->Post(Request(id, 5 + static_cast<std::uint32_t>(id), 30)));
  }
  for (std::uint64_t id = 1; id <= 40; ++id) {
    ASSERT_TRUE(recorder_.WaitForEnd(id));
    EXPECT_EQ(recorder_.StoryOf(id).tokens.size(), 30u);
  }
  // The simulated tokens depend on prompt and position alone: alone, a request gives the same.
  ASSERT_TRUE(loop_->Post(Request(7 + 1000, 12, 30)));
  ASSERT_TRUE(recorder_.WaitForEnd(1007));
  Arrival again = Request(7, 12, 30);
  again.request = RequestId(2000);
  ASSERT_TRUE(loop_->Post(again));
  ASSERT_TRUE(recorder_.WaitForEnd(2000));
  EXPECT_EQ(recorder_.StoryOf(2000).tokens, recorder_.StoryOf(7).tokens);
  EXPECT_NE(recorder_.StoryOf(1007).tokens, recorder_.StoryOf(7).tokens);
}

TEST_F(CoreLoopTest, OneMessagePerStepDirectionAndRankAndTwoPlansInFlight) {
  StartShards(2);
  CoreLoopOptions options;
  options.step_log = folder_ / "steps.jsonl";
  StartLoop(options);
  for (std::uint64_t id = 1; id <= 8; ++id) ASSERT_TRUE(loop_->Post(Request(id, 4, 50)));
  for (std::uint64_t id = 1; id <= 8; ++id) ASSERT_TRUE(recorder_.WaitForEnd(id));
  loop_->Stop();
  const std::string log = ReadFile(options.step_log);
  const auto steps = std::to_string(std::count(log.begin(), log.end(), '\n'));
  const std::string page = metrics_.Render();
  EXPECT_THAT(page, HasSubstr("{direction=\"plan\",group=\"0\",rank=\"0\"} " + steps));
  EXPECT_THAT(page, HasSubstr("{direction=\"plan\",group=\"0\",rank=\"1\"} " + steps));
  EXPECT_THAT(page, HasSubstr("penstock_plans_in_flight_max 2"));
}

TEST_F(CoreLoopTest, ACancelledRequestEndsAndTheOthersContinue) {
  SimOptions slow;
  slow.step_time = std::chrono::milliseconds(2);
  StartShards(1, slow);
  StartLoop();
  ASSERT_TRUE(loop_->Post(Request(1, 4, 2000)));
  ASSERT_TRUE(loop_->Post(Request(2, 4, 100)));
  ASSERT_TRUE(
      recorder_.WaitUntil([&] { return recorder_.stories_[RequestId(1)].tokens.size() > 10; }));
  ASSERT_TRUE(loop_->Post(scheduler::Cancel{RequestId(1)}));
  ASSERT_TRUE(recorder_.WaitForEnd(1));
  EXPECT_EQ(recorder_.StoryOf(1).finished->reason, FinishReason::kCancelled);
  ASSERT_TRUE(recorder_.WaitForEnd(2));
  EXPECT_EQ(recorder_.StoryOf(2).tokens.size(), 100u);
}

TEST_F(CoreLoopTest, ALostRankFailsRunningRequestsAndIsNamed) {
  SimOptions slow;
  slow.step_time = std::chrono::milliseconds(5);
  StartShards(2, slow);
  StartLoop();
  ASSERT_TRUE(loop_->Post(Request(1, 4, 3000)));
  ASSERT_TRUE(
      recorder_.WaitUntil([&] { return !recorder_.stories_[RequestId(1)].tokens.empty(); }));
  servers_[1]->Stop();
  EXPECT_THAT(recorder_.WaitForLoss(), HasSubstr("shard-"));
  ASSERT_TRUE(recorder_.WaitForEnd(1));
  EXPECT_EQ(recorder_.StoryOf(1).failed->kind, scheduler::FailureKind::kGroupLost);
}

TEST_F(CoreLoopTest, AHungShardLosesTheGroupAtTheStepTimeout) {
  SimOptions hangs;
  hangs.hang_at_step = 3;
  StartShards(1, hangs);
  CoreLoopOptions options;
  options.step_timeout = std::chrono::milliseconds(200);
  StartLoop(options);
  ASSERT_TRUE(loop_->Post(Request(1, 4, 100)));
  EXPECT_THAT(recorder_.WaitForLoss(), HasSubstr("shard-0 has not answered step 3"));
  ASSERT_TRUE(recorder_.WaitForEnd(1));
  EXPECT_EQ(recorder_.StoryOf(1).failed->kind, scheduler::FailureKind::kGroupLost);
}

TEST_F(CoreLoopTest, ARankThatHangsBlocksThePipelineUntilTheStepTimeout) {
  SimOptions options;
  options.world_size = 2;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    options.hang_at_step = options.rank == 1 ? 4 : 0;
    StartShard(options);
  }
  CoreLoopOptions loop;
  loop.step_timeout = std::chrono::milliseconds(300);
  StartLoop(loop);
  ASSERT_TRUE(loop_->Post(Request(1, 4, 500)));
  EXPECT_THAT(recorder_.WaitForLoss(), HasSubstr("shard-1 has not answered step 4"));
  ASSERT_TRUE(recorder_.WaitForEnd(1));
  // Both ranks answered steps 1 to 3. Step 3 is complete, so the result of step 4 is delivered.
  EXPECT_LE(recorder_.StoryOf(1).tokens.size(), 4u);
}

TEST_F(CoreLoopTest, AHungGroupIsLostInTimeAndTheOtherContinuesWithoutAGap) {
  StartTwoGroups(5);
  for (std::uint64_t id = 1; id <= 8; ++id) ASSERT_TRUE(loop_->Post(Request(id, 4, 400)));
  EXPECT_THAT(recorder_.WaitForLoss(), HasSubstr("group 1: shard-0 has not answered step 5"));
  for (std::uint64_t id = 1; id <= 8; ++id) ASSERT_TRUE(recorder_.WaitForEnd(id));
  std::size_t failed = 0;
  for (std::uint64_t id = 1; id <= 8; ++id) {
    const Recorder::Story story = recorder_.StoryOf(id);
    failed += story.failed.has_value() ? 1 : 0;
    if (!story.failed) {
      EXPECT_EQ(story.tokens.size(), 400u);
    }
  }
  // At most half: a request that was not yet placed when the group hung runs in the other.
  EXPECT_GE(failed, 1u);
  EXPECT_LE(failed, 4u);
  // Steps take 2 ms. Waiting for the end of the hung streams would take half a second from them.
  EXPECT_LT(recorder_.LongestGap(), std::chrono::milliseconds(450));
  const std::string page = metrics_.Render();
  EXPECT_THAT(page, HasSubstr("penstock_group_up{group=\"0\"} 1"));
  EXPECT_THAT(page, HasSubstr("penstock_group_up{group=\"1\"} 0"));
  EXPECT_THAT(page, HasSubstr("penstock_group_losses_total{group=\"1\"} 1"));
  loop_->Stop();
  EXPECT_THAT(ReadFile(folder_ / "steps.jsonl"), HasSubstr("{\"group\":1,\"step\":4,"));
}

TEST_F(CoreLoopTest, ALostGroupCanBeAttachedAgain) {
  StartTwoGroups(5);
  for (std::uint64_t id = 1; id <= 2; ++id) ASSERT_TRUE(loop_->Post(Request(id, 4, 50)));
  EXPECT_THAT(recorder_.WaitForLoss(), HasSubstr("group 1"));
  for (std::uint64_t id = 1; id <= 2; ++id) ASSERT_TRUE(recorder_.WaitForEnd(id));
  recorder_.lost_groups_.clear();
  servers_.resize(2);  // the hung ones
  SimOptions options;
  options.world_size = 2;
  for (options.rank = 0; options.rank < 2; ++options.rank) StartShard(options, GroupId(1));
  GroupLinkOptions link = LinkTo(GroupId(1));
  link.epoch = Epoch(2);
  AttachGroup(std::move(link));
  for (std::uint64_t id = 11; id <= 30; ++id) ASSERT_TRUE(loop_->Post(Request(id, 4, 50)));
  for (std::uint64_t id = 11; id <= 30; ++id) {
    ASSERT_TRUE(recorder_.WaitForEnd(id));
    EXPECT_EQ(recorder_.StoryOf(id).tokens.size(), 50u);
  }
  EXPECT_THAT(metrics_.Render(), HasSubstr("penstock_group_up{group=\"1\"} 1"));
  loop_->Stop();
  const std::string log = ReadFile(folder_ / "steps.jsonl");
  EXPECT_THAT(log, HasSubstr("{\"group\":1,\"step\":40,"));
}

TEST_F(CoreLoopTest, ARecordReplaysToTheSameOutputs) {
  StartShards(1);
  CoreLoopOptions options;
  options.record = folder_ / "inputs.log";
  StartLoop(options);
  for (std::uint64_t id = 1; id <= 5; ++id) ASSERT_TRUE(loop_->Post(Request(id, 9, 12)));
  for (std::uint64_t id = 1; id <= 5; ++id) ASSERT_TRUE(recorder_.WaitForEnd(id));
  loop_->Stop();

  const sim::ReplayReport report = sim::Replay(ReadFile(options.record));
  EXPECT_TRUE(report.good()) << report.error << testing::PrintToString(report.findings);
  EXPECT_GT(report.inputs, 5u);
  EXPECT_EQ(report.compared, report.inputs);
  EXPECT_EQ(report.tokens, 60u);
}

TEST_F(CoreLoopTest, AnUnwritableLogIsAnErrorThatNamesOptionAndFile) {
  CoreLoopOptions options;
  options.step_log = folder_ / "missing/steps.jsonl";
  CoreLoop loop(options, recorder_, metrics_);
  const std::string message = Message(loop.Start());
  EXPECT_THAT(message, HasSubstr("step-log"));
  EXPECT_THAT(message, HasSubstr("missing/steps.jsonl"));
}

TEST(StepLog, AFullDiskEndsItWithOneWarning) {
  StepLog log;
  ASSERT_EQ(Message(log.Open("/dev/full")), "");
  ::testing::internal::CaptureStderr();
  log.Write({}, std::nullopt);
  log.Write({}, std::nullopt);
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string warning = "--step-log /dev/full: cannot be written";
  EXPECT_THAT(said, HasSubstr(warning));
  EXPECT_EQ(said.find(warning), said.rfind(warning));
}

TEST_F(CoreLoopTest, ArrivalsBeyondTheMailboxAreRefused) {
  CoreLoopOptions options;
  options.mailbox_arrivals = 2;
  CoreLoop loop(options, recorder_, metrics_);  // not started: nothing takes from the mailbox
  EXPECT_TRUE(loop.Post(Request(1, 1, 1)));
  EXPECT_TRUE(loop.Post(Request(2, 1, 1)));
  EXPECT_FALSE(loop.Post(Request(3, 1, 1)));
  EXPECT_TRUE(loop.Post(scheduler::Cancel{RequestId(1)}));
}

TEST(GroupLink, AMissingShardIsNamedAtTheDeadline) {
  GroupLinkOptions options;
  options.sockets = {"/tmp/penstock-no-such-socket-0"};
  options.startup_timeout = std::chrono::milliseconds(100);
  Metrics metrics;
  const auto link = GroupLink::Form(options, metrics);
  EXPECT_THAT(Message(link.status()), HasSubstr("shard-0: Describe"));
}

TEST_F(CoreLoopTest, RanksOfAnotherWorldAreRefusedByName) {
  StartShards(1);
  GroupLinkOptions options;
  options.sockets = {servers_[0]->address(), servers_[0]->address()};
  options.startup_timeout = kDeadline;
  Metrics metrics;
  const auto link = GroupLink::Form(options, metrics);
  EXPECT_THAT(Message(link.status()), HasSubstr("world_size"));
}

}  // namespace
}  // namespace penstock::router
