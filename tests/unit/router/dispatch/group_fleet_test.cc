// Groups that come, go and come back, over real Unix sockets.
#include "router/dispatch/group_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>

#include "common/status.h"
#include "router/metrics/metrics.h"
#include "shard/service/shard_server.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/simshard/sim_engine.h"

namespace penstock::router {
namespace {

using simshard::SimOptions;
using testing::HasSubstr;

constexpr auto kDeadline = std::chrono::seconds(30);

class GroupFleetTest : public testing::Test {
 protected:
  const TempFolder folder_;  // outlives what listens in it

  void TearDown() override {
    fleet_.reset();
    attached_.clear();
    servers_.clear();
  }

  void StartShard(std::uint32_t group, SimOptions options = {}) {
    shard::ShardServerOptions server;
    server.listen.socket_prefix = folder_ / "shard-" + std::to_string(group);
    auto started = shard::ShardServer::Start(std::make_unique<simshard::SimEngine>(options),
                                             std::move(server));
    ASSERT_TRUE(started.ok()) << started.status();
    servers_.resize(std::max<std::size_t>(servers_.size(), group + 1));
    servers_[group] = *std::move(started);
  }

  FleetOptions Options(std::uint32_t groups) const {
    FleetOptions options;
    for (std::uint32_t group = 0; group < groups; ++group) {
      GroupLinkOptions link;
      link.group = GroupId(group);
      link.name = "group " + std::to_string(group);
      link.sockets = {folder_ / "shard-" + std::to_string(group) + "-0"};
      link.startup_timeout = kDeadline;
      options.groups.push_back(std::move(link));
    }
    options.reattach = true;
    options.first_pause = std::chrono::milliseconds(10);
    return options;
  }

  std::string Start(FleetOptions options) {
    fleet_ = std::make_unique<GroupFleet>(std::move(options), metrics_);
    std::promise<std::string> outcome;
    fleet_->Start([&](const absl::Status& status) { outcome.set_value(Message(status)); });
    auto future = outcome.get_future();
    if (future.wait_for(kDeadline) != std::future_status::ready) return "(no outcome)";
    return future.get();
  }

  void Serve() {
    fleet_->Serve([this](std::unique_ptr<GroupLink> link) {
      const std::lock_guard lock(mutex_);
      attached_.push_back(std::move(link));
      changed_.notify_all();
    });
  }
  bool WaitForAttached(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [&] { return attached_.size() == count; });
  }

  Metrics metrics_;
  std::vector<std::unique_ptr<shard::ShardServer>> servers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<GroupLink>> attached_;
  std::unique_ptr<GroupFleet> fleet_;
};

TEST_F(GroupFleetTest, FormsAllGroupsAndAgreesOnTheSmallestSizes) {
  SimOptions options;
  options.max_sequence_length = 1000;  // part of the fingerprint
  StartShard(0, options);
  options.blocks = 100;
  StartShard(1, options);
  ASSERT_EQ(Start(Options(2)), "");
  Serve();
  ASSERT_TRUE(WaitForAttached(2));
  EXPECT_EQ(fleet_->Agreed().capacity.blocks, 100u);
}

TEST_F(GroupFleetTest, LayersWithAWindowHaveTheirOwnFacts) {
  SimOptions options;
  options.window = 64;
  options.window_blocks = 50;
  StartShard(0, options);
  ASSERT_EQ(Start(Options(1)), "");
  const GroupFormed formed = fleet_->Agreed();
  ASSERT_EQ(formed.facts.kv_groups.size(), 2u);
  EXPECT_EQ(formed.facts.kv_groups[1], (KvGroupFacts{8, 1, 64}));
  EXPECT_EQ(formed.capacity.window, 64u);
  EXPECT_EQ(formed.capacity.window_blocks, 50u);
  EXPECT_EQ(formed.cache_bytes, (formed.capacity.blocks + 50u) * formed.facts.block_size * 8);
}

TEST_F(GroupFleetTest, AGroupOfAnotherModelIsRefusedByName) {
  SimOptions other;
  other.vocabulary = 777;
  StartShard(0);
  StartShard(1, other);
  EXPECT_THAT(Start(Options(2)), HasSubstr(".fingerprint` must be simulated-"));
}

TEST_F(GroupFleetTest, StartsWithAnyGroupAndAttachesTheOtherLater) {
  FleetOptions options = Options(2);
  options.start_with_any = true;
  StartShard(1);
  ASSERT_EQ(Start(options), "");
  Serve();
  ASSERT_TRUE(WaitForAttached(1));
  EXPECT_EQ(attached_[0]->formed().group, GroupId(1));
  StartShard(0);
  ASSERT_TRUE(WaitForAttached(2));
}

TEST_F(GroupFleetTest, ALostGroupIsFormedAgainWithAHigherEpoch) {
  StartShard(0);
  ASSERT_EQ(Start(Options(1)), "");
  Serve();
  ASSERT_TRUE(WaitForAttached(1));
  std::unique_ptr<GroupLink> dead = std::move(attached_[0]);
  const Epoch before = dead->formed().epoch;
  servers_[0].reset();
  dead->Abandon();
  fleet_->Lost(std::move(dead));
  StartShard(0);
  ASSERT_TRUE(WaitForAttached(2));
  EXPECT_GT(attached_[1]->formed().epoch, before);
}

TEST_F(GroupFleetTest, StoppingEndsAnAttemptThatWaitsForItsShards) {
  FleetOptions options = Options(1);
  options.groups[0].startup_timeout = std::chrono::hours(1);
  Metrics metrics;
  GroupFleet fleet(std::move(options), metrics);
  fleet.Start([](const absl::Status&) { ADD_FAILURE() << "no shard is there"; });
  fleet.Stop();
}

}  // namespace
}  // namespace penstock::router
