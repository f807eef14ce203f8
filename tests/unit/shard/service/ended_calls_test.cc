// How the calls of a shard end, over a real Unix socket.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "common/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "penstock/v1/shard.grpc.pb.h"
#include "shard/service/shard_server.h"
#include "tests/unit/shard/service/fake_engine.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class EndedCallsTest : public testing::Test {
 protected:
  void TearDown() override {
    control_.Set(&FakeEngine::Control::hold_load, false);
    server_.reset();
  }

  void Start() {
    ShardServerOptions options;
    options.listen.socket_prefix = folder_ / "shard";
    options.on_loaded = [this](const absl::Status&) { control_.Note("loaded"); };
    auto server = ShardServer::Start(std::make_unique<FakeEngine>(control_, 0), options);
    ASSERT_EQ(Message(server.status()), "");
    server_ = *std::move(server);
    const auto channel =
        grpc::CreateChannel("unix:" + server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Shard::NewStub(channel);
    health_ = grpc::health::v1::Health::NewStub(channel);
  }

  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  const TempFolder folder_;  // outlives the server
  FakeEngine::Control control_;
  std::unique_ptr<ShardServer> server_;
  std::unique_ptr<v1::Shard::Stub> stub_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

TEST_F(EndedCallsTest, HealthCanBeWatchedUntilTheShardStops) {
  control_.Set(&FakeEngine::Control::hold_load, true);
  Start();
  grpc::ClientContext context;
  SetDeadline(context);
  HealthCheckRequest request;
  request.set_service("penstock.v1.Shard");
  const auto watch = health_->Watch(&context, request);
  HealthCheckResponse now;
  ASSERT_TRUE(watch->Read(&now));
  EXPECT_EQ(now.status(), HealthCheckResponse::NOT_SERVING);
  control_.Set(&FakeEngine::Control::hold_load, false);
  ASSERT_TRUE(watch->Read(&now));
  EXPECT_EQ(now.status(), HealthCheckResponse::SERVING);
  server_->Stop();
  ASSERT_TRUE(watch->Read(&now));
  EXPECT_EQ(now.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(watch->Read(&now));
  EXPECT_FALSE(watch->Finish().ok());
}

TEST_F(EndedCallsTest, HealthOfTheServerAndOfAnUnknownService) {
  Start();
  ASSERT_TRUE(control_.WaitForCall("loaded"));
  const auto check = [this](const std::string& service, HealthCheckResponse& answer) {
    grpc::ClientContext context;
    SetDeadline(context);
    HealthCheckRequest request;
    request.set_service(service);
    return health_->Check(&context, request, &answer).error_code();
  };
  HealthCheckResponse answer;
  EXPECT_EQ(check("", answer), grpc::StatusCode::OK);
  EXPECT_EQ(answer.status(), HealthCheckResponse::SERVING);
  EXPECT_EQ(check("unknown", answer), grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext context;
  SetDeadline(context);
  HealthCheckRequest request;
  request.set_service("unknown");
  const auto watch = health_->Watch(&context, request);
  ASSERT_TRUE(watch->Read(&answer)) << "the service may be added later";
  EXPECT_EQ(answer.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  context.TryCancel();
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

// Many short calls that end before or after a cancellation or a deadline.
TEST_F(EndedCallsTest, CancelledCallsDoNotHarmOtherCalls) {
  Start();
  ASSERT_TRUE(control_.WaitForCall("loaded"));
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([this, caller] {
      for (int i = 0; i < 50; ++i) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::microseconds(100 * ((caller + i) % 5)));
        v1::DescribeResponse facts;
        stub_->Describe(&context, {}, &facts);
        grpc::ClientContext stream;
        const auto execute = stub_->Execute(&stream);
        if (i % 2 == 0) execute->Write(v1::StepPlan());
        stream.TryCancel();
        execute->Finish();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  grpc::ClientContext context;
  SetDeadline(context);
  v1::DescribeResponse facts;
  EXPECT_TRUE(stub_->Describe(&context, {}, &facts).ok());
  EXPECT_TRUE(facts.loaded());
}

// Each call ends, before or after the stop.
TEST_F(EndedCallsTest, CallsCancelledWhileTheServerStopsAllEnd) {
  constexpr std::size_t kCallers = 4;
  for (std::size_t round = 1; round <= 10; ++round) {
    Start();
    ASSERT_TRUE(control_.WaitForCall("loaded", round));
    std::atomic<bool> stopped = false;
    std::vector<std::thread> callers;
    for (std::size_t caller = 0; caller < kCallers; ++caller) {
      callers.emplace_back([&] {
        for (std::size_t i = 0; !stopped; ++i) {
          grpc::ClientContext stream;
          SetDeadline(stream);
          const auto execute = stub_->Execute(&stream);
          if (i % 2 == 0) execute->Write(v1::StepPlan());
          if (i == 3) control_.Note("busy");
          stream.TryCancel();
          EXPECT_NE(execute->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
          grpc::ClientContext context;
          SetDeadline(context);
          v1::DescribeResponse facts;
          EXPECT_NE(stub_->Describe(&context, {}, &facts).error_code(),
                    grpc::StatusCode::DEADLINE_EXCEEDED);
        }
      });
    }
    EXPECT_TRUE(control_.WaitForCall("busy", kCallers * round));
    server_->Stop();
    stopped = true;
    for (std::thread& caller : callers) caller.join();
  }
}

}  // namespace
}  // namespace penstock::shard
