// The service over a real Unix socket, with a fake engine.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>

#include <chrono>
#include <memory>

#include "common/status.h"
#include "penstock/v1/shard.grpc.pb.h"
#include "shard/service/shard_server.h"
#include "shard/service/shard_service.h"
#include "tests/unit/shard/service/fake_engine.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {

inline constexpr const char* kFingerprint = "the-right-one";

class ShardServerTest : public testing::Test {
 protected:
  const TempFolder folder_;  // outlives what listens in it

  void TearDown() override {
    control_.Set(&FakeEngine::Control::hold_steps, false);
    control_.Set(&FakeEngine::Control::hold_load, false);
    server_.reset();
  }

  absl::Status StartServer(std::uint32_t rank = 0) {
    ShardServerOptions options;
    options.listen.socket_prefix = folder_ / "shard";
    options.on_loaded = [this](const absl::Status&) { control_.Note("loaded"); };
    options.second_driver = [this](ServiceState& state, const ListenAddress&) {
      state_ = &state;
      return nullptr;
    };
    auto server = ShardServer::Start(std::make_unique<FakeEngine>(control_, rank), options);
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    stub_ = v1::Shard::NewStub(
        grpc::CreateChannel("unix:" + server_->address(), grpc::InsecureChannelCredentials()));
    return absl::OkStatus();
  }
  void StartLoaded(std::uint32_t rank = 0) {
    ASSERT_EQ(Message(StartServer(rank)), "");
    ASSERT_TRUE(control_.WaitForCall("loaded"));
  }

  static void SetDeadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  }

  static v1::ConfigureRequest ConfigureOf(std::uint64_t epoch, std::uint32_t rank = 0) {
    v1::ConfigureRequest request;
    request.set_epoch(epoch);
    request.set_world_size(2);
    request.set_rank(rank);
    request.set_fingerprint(kFingerprint);
    request.mutable_limits()->set_max_step_tokens(16);
    request.mutable_limits()->set_max_sequences(4);
    request.mutable_limits()->set_max_sequence_length(32);
    return request;
  }
  grpc::Status Configure(const v1::ConfigureRequest& request) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::ConfigureResponse response;
    return stub_->Configure(&context, request, &response);
  }
  grpc::Status Warmup(std::uint64_t epoch) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::WarmupRequest request;
    request.set_epoch(epoch);
    return stub_->Warmup(&context, request, &warm_);
  }
  grpc::Status Commit(std::uint64_t epoch, std::uint32_t blocks) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::CommitRequest request;
    request.set_epoch(epoch);
    request.add_blocks(blocks);
    v1::CommitResponse response;
    return stub_->Commit(&context, request, &response);
  }
  void Form(std::uint64_t epoch, std::uint32_t rank = 0) {
    ASSERT_EQ(Configure(ConfigureOf(epoch, rank)).error_message(), "");
    ASSERT_EQ(Warmup(epoch).error_message(), "");
    ASSERT_EQ(Commit(epoch, 8).error_message(), "");
  }

  // Step 1 starts a sequence of two prompt tokens; later steps decode it.
  static v1::StepPlan PlanOf(std::uint64_t step, std::uint64_t epoch = 1) {
    v1::StepPlan plan;
    plan.set_epoch(epoch);
    plan.set_step(step);
    if (step > 1) {
      plan.add_segments()->mutable_decode()->set_max_rows(1);
      return plan;
    }
    v1::SequenceStart& start = *plan.add_starts();
    start.set_sequence(42);
    start.add_prompt(5);
    start.add_prompt(6);
    start.set_prompt_length(2);
    v1::Sampling& sampling = *start.mutable_sampling();
    sampling.set_temperature(1);
    sampling.set_top_p(1);
    sampling.set_typical_p(1);
    sampling.set_repetition_penalty(1);
    for (std::uint32_t block : {0u, 1u, 2u}) {
      v1::BlockOp& op = *plan.add_block_ops();
      op.set_kind(v1::BLOCK_OP_KIND_APPEND);
      op.set_dst(block);
    }
    v1::PromptSegment& prompt = *plan.add_segments()->mutable_prompt();
    prompt.set_count(2);
    prompt.set_logits(v1::LOGITS_WANTED_LAST);
    return plan;
  }

  FakeEngine::Control control_;
  std::unique_ptr<ShardServer> server_;
  ServiceState* state_ = nullptr;  // the server's
  std::unique_ptr<v1::Shard::Stub> stub_;
  v1::WarmupResponse warm_;
};

}  // namespace penstock::shard
