// A client of a simulated shard whose Execute stream the test's thread serves.
#include "router/dispatch/shard_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "common/status.h"
#include "penstock/v1/shard.pb.h"
#include "router/dispatch/execute_queue.h"
#include "shard/service/shard_server.h"
#include "tests/unit/support/temp_folder.h"
#include "tools/simshard/sim_engine.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;

constexpr auto kPatience = std::chrono::seconds(30);

class ShardClientTest : public testing::Test, public ExecuteListener {
 protected:
  void OnResult(std::uint32_t, StepResult) override {}
  void OnStreamEnd(std::uint32_t, absl::Status status) override { ended_ = std::move(status); }

  bool WaitFor(std::chrono::steady_clock::duration time) {
    return queue_->Wait(std::chrono::steady_clock::now() + time);
  }

  void StartExecute() {
    shard::ShardServerOptions options;
    options.listen.socket_prefix = folder_ / "shard";
    auto server = shard::ShardServer::Start(
        std::make_unique<simshard::SimEngine>(simshard::SimOptions()), std::move(options));
    ASSERT_EQ(Message(server.status()), "");
    server_ = *std::move(server);
    client_ = std::make_unique<ShardClient>(server_->address(), 0, std::stop_token());
    const auto deadline = std::chrono::system_clock::now() + kPatience;
    ASSERT_EQ(Message(client_->WatchLoad(deadline)), "");
    auto facts = client_->Describe(deadline);
    ASSERT_EQ(Message(facts.status()), "");
    v1::ConfigureRequest request;
    request.set_epoch(1);
    request.set_world_size(1);
    request.set_fingerprint(facts->fingerprint);
    request.mutable_limits()->set_max_step_tokens(16);
    request.mutable_limits()->set_max_sequence_length(16);
    request.mutable_limits()->set_max_sequences(1);
    ASSERT_EQ(Message(client_->Configure(request, deadline)), "");
    ASSERT_EQ(Message(client_->Warmup(Epoch(1), deadline).status()), "");
    ASSERT_EQ(Message(client_->Commit(Epoch(1), {{8}}, deadline).status()), "");
    queue_->Own();
    client_->PrepareExecute(this, queue_);
    client_->StartExecute();
  }

  const TempFolder folder_;  // outlives what listens in it
  std::unique_ptr<shard::ShardServer> server_;
  const std::shared_ptr<ExecuteQueue> queue_ = std::make_shared<ExecuteQueue>();
  std::unique_ptr<ShardClient> client_;
  std::optional<absl::Status> ended_;
};

// The answer to a life check would arrive at a stream that may no longer exist.
TEST_F(ShardClientTest, AnEndedStreamSendsNoLifeCheck) {
  ASSERT_NO_FATAL_FAILURE(StartExecute());
  StepPlan plan;
  plan.epoch = Epoch(2);  // not the group's
  client_->Send(plan);
  while (!ended_.has_value()) ASSERT_TRUE(WaitFor(kPatience));
  EXPECT_TRUE(absl::IsInvalidArgument(*ended_)) << *ended_;
  client_->CheckAlive(milliseconds(0));
  EXPECT_FALSE(WaitFor(milliseconds(200)));
}

}  // namespace
}  // namespace penstock::router
