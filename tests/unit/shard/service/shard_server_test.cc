// The service over a real Unix socket, with a fake engine behind it.
#include "shard/service/shard_server.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/status.h"
#include "penstock/v1/shard.grpc.pb.h"
#include "tests/unit/shard/service/fake_engine.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;
using Stream = grpc::ClientReaderWriter<v1::StepPlan, v1::StepResult>;

constexpr const char* kFingerprint = "the-right-one";

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
    options.rank = rank;
    options.on_loaded = [this](const absl::Status&) { control_.Note("loaded"); };
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
    request.set_blocks(blocks);
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
  std::unique_ptr<v1::Shard::Stub> stub_;
  v1::WarmupResponse warm_;
};

TEST_F(ShardServerTest, TheSocketIsPrivateAndGoneAfterStop) {
  StartLoaded(3);
  const std::string path = folder_ / "shard-3";
  EXPECT_EQ(server_->address(), path);
  struct stat info {};
  ASSERT_EQ(lstat(path.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  server_->Stop();
  EXPECT_NE(lstat(path.c_str(), &info), 0);
}

TEST_F(ShardServerTest, AStaleSocketIsReplacedALiveOneIsNot) {
  StartLoaded();
  const std::string path = server_->address();
  // A second name keeps the socket of the first server after it has unlinked its own: a stale one.
  std::filesystem::create_hard_link(path, path + ".kept");
  auto taken = ShardServer::Start(std::make_unique<FakeEngine>(control_, 0),
                                  {.listen = {.socket_prefix = folder_ / "shard"}});
  EXPECT_THAT(Message(taken.status()), HasSubstr("another process listens there"));
  server_->Stop();
  std::filesystem::rename(path + ".kept", path);
  EXPECT_EQ(Message(StartServer()), "");
}

TEST_F(ShardServerTest, AnOpenDirectoryIsRefused) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  EXPECT_THAT(Message(StartServer()), HasSubstr("mode 0700"));
}

TEST_F(ShardServerTest, TcpIsRefused) {
  for (const char* prefix : {"127.0.0.1:50051", "tcp://h:1", "", "relative"}) {
    auto server = ShardServer::Start(std::make_unique<FakeEngine>(control_, 0),
                                     {.listen = {.socket_prefix = prefix}});
    EXPECT_THAT(Message(server.status()), HasSubstr("`shard-uds-path` must be an absolute path"));
  }
}

TEST_F(ShardServerTest, DescribeAnswersWhileLoading) {
  control_.Set(&FakeEngine::Control::hold_load, true);
  ASSERT_EQ(Message(StartServer()), "");
  grpc::ClientContext context;
  SetDeadline(context);
  v1::DescribeResponse response;
  ASSERT_TRUE(stub_->Describe(&context, {}, &response).ok());
  EXPECT_FALSE(response.loaded());
  EXPECT_EQ(response.world_size(), 2u);
  EXPECT_EQ(Configure(ConfigureOf(1)).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ShardServerTest, WatchLoadTellsTheEndAndTheError) {
  control_.Set(&FakeEngine::Control::hold_load, true);
  control_.load_status = absl::NotFoundError("no weights here");
  ASSERT_EQ(Message(StartServer()), "");
  grpc::ClientContext context;
  SetDeadline(context);
  auto reader = stub_->WatchLoad(&context, {});
  v1::LoadProgress progress;
  while (progress.bytes_done() != 10) ASSERT_TRUE(reader->Read(&progress));
  EXPECT_FALSE(progress.done());
  control_.Set(&FakeEngine::Control::hold_load, false);
  while (!progress.done()) ASSERT_TRUE(reader->Read(&progress));
  EXPECT_EQ(progress.error(), "no weights here");
  EXPECT_FALSE(reader->Read(&progress));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ShardServerTest, MismatchesAreRefusedByName) {
  StartLoaded();
  v1::ConfigureRequest request = ConfigureOf(1);
  request.set_fingerprint("another");
  grpc::Status status = Configure(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("`fingerprint` must be the-right-one"));
  request = ConfigureOf(2);
  request.set_world_size(4);
  EXPECT_THAT(Configure(request).error_message(), HasSubstr("`world_size` must be 2"));
  request = ConfigureOf(3, 1);
  EXPECT_THAT(Configure(request).error_message(), HasSubstr("`rank` must be 0"));
  request = ConfigureOf(4);
  request.mutable_limits()->set_max_sequence_length(65);
  status = Configure(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("`limits.max_sequence_length` must be from 1 to 64"));
}

TEST_F(ShardServerTest, TheOrderOfFormationIsEnforced) {
  StartLoaded();
  grpc::Status status = Warmup(1);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("expected Configure"));
  Form(1);
  EXPECT_EQ(warm_.blocks(), 8u);
  EXPECT_EQ(warm_.step_times(0).nanoseconds(), 1000u);
  EXPECT_THAT(Commit(1, 8).error_message(), HasSubstr("expected Execute"));
}

TEST_F(ShardServerTest, MoreBlocksThanWarmupGaveAreRefused) {
  StartLoaded();
  ASSERT_TRUE(Configure(ConfigureOf(1)).ok());
  ASSERT_TRUE(Warmup(1).ok());
  EXPECT_THAT(Commit(1, 9).error_message(), HasSubstr("`blocks` must be from 1 to 8"));
}

TEST_F(ShardServerTest, ExecuteAnswersEachPlanOnceInOrder) {
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  // Depth 2: the second plan leaves before the first result is read.
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  ASSERT_TRUE(stream->Write(PlanOf(2)));
  ASSERT_TRUE(stream->Write(PlanOf(3)));
  stream->WritesDone();
  std::vector<std::uint64_t> steps;
  std::vector<std::uint64_t> digests;
  v1::StepResult result;
  while (stream->Read(&result)) {
    steps.push_back(result.step());
    digests.push_back(result.digest());
    ASSERT_EQ(result.sequences_size(), 1);
    EXPECT_EQ(result.sequences(0).sequence(), 42u);
    EXPECT_EQ(result.sequences(0).committed_length(), 1 + result.step());
  }
  EXPECT_EQ(stream->Finish().error_message(), "");
  EXPECT_THAT(steps, testing::ElementsAre(1, 2, 3));
  EXPECT_NE(digests[0], digests[1]);
}

TEST_F(ShardServerTest, APlanIsBegunBeforeTheResultOfTheOneBeforeIsThere) {
  control_.run_ahead = true;
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  ASSERT_TRUE(stream->Write(PlanOf(2)));
  ASSERT_TRUE(control_.WaitForCall("Begin", 2));
  control_.ready[0]();
  v1::StepResult result;
  ASSERT_TRUE(stream->Read(&result));
  EXPECT_EQ(result.step(), 1u);
  EXPECT_EQ(result.sequences(0).committed_length(), 2u);
  // The third begins behind the second; the second's word then gives one result, the end the other.
  ASSERT_TRUE(stream->Write(PlanOf(3)));
  ASSERT_TRUE(control_.WaitForCall("Begin", 3));
  control_.ready[1]();
  ASSERT_TRUE(stream->Read(&result));
  EXPECT_EQ(result.step(), 2u);
  stream->WritesDone();
  ASSERT_TRUE(stream->Read(&result));
  EXPECT_EQ(result.step(), 3u);
  EXPECT_EQ(result.sequences(0).committed_length(), 4u);
  EXPECT_FALSE(stream->Read(&result));
  EXPECT_EQ(stream->Finish().error_message(), "");
  for (const auto& ready : control_.ready) ready();  // too late, and nobody minds
  control_.ready.clear();
}

TEST_F(ShardServerTest, WhatWasBegunIsCollectedBeforeAStepThatCannotRunAhead) {
  control_.run_ahead = true;
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  ASSERT_TRUE(control_.WaitForCall("Begin", 1));
  control_.Set(&FakeEngine::Control::run_ahead, false);
  ASSERT_TRUE(stream->Write(PlanOf(2)));
  v1::StepResult result;
  for (std::uint64_t step : {1u, 2u}) {
    ASSERT_TRUE(stream->Read(&result));
    EXPECT_EQ(result.step(), step);
    EXPECT_EQ(result.sequences(0).committed_length(), 1 + step);
  }
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_message(), "");
  control_.ready.clear();
}

TEST_F(ShardServerTest, OtherRanksAnswerTheDigestAlone) {
  StartLoaded(1);
  Form(1, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  v1::StepResult result;
  ASSERT_TRUE(stream->Read(&result));
  EXPECT_EQ(result.sequences_size(), 0);
  EXPECT_NE(result.digest(), 0u);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ShardServerTest, OpeningAndClosingResetTheEngine) {
  StartLoaded();
  Form(1);
  for (std::size_t round = 1; round <= 2; ++round) {
    grpc::ClientContext context;
    SetDeadline(context);
    auto stream = stub_->Execute(&context);
    ASSERT_TRUE(stream->Write(PlanOf(1)));
    v1::StepResult result;
    ASSERT_TRUE(stream->Read(&result));
    stream->WritesDone();
    ASSERT_TRUE(stream->Finish().ok());
    EXPECT_TRUE(control_.WaitForCall("Reset", 2 * round));
  }
}

TEST_F(ShardServerTest, ASecondDriverIsRefused) {
  StartLoaded();
  Form(1);
  grpc::ClientContext first_context;
  SetDeadline(first_context);
  auto first = stub_->Execute(&first_context);
  ASSERT_TRUE(first->Write(PlanOf(1)));
  v1::StepResult result;
  ASSERT_TRUE(first->Read(&result));
  grpc::ClientContext second_context;
  SetDeadline(second_context);
  auto second = stub_->Execute(&second_context);
  EXPECT_FALSE(second->Read(&result));
  const grpc::Status status = second->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("one driver at a time"));
  // The first one is none the worse for it.
  ASSERT_TRUE(first->Write(PlanOf(2)));
  ASSERT_TRUE(first->Read(&result));
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
}

TEST_F(ShardServerTest, AnInvalidPlanEndsTheGroupByName) {
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  ASSERT_TRUE(stream->Write(PlanOf(3)));
  v1::StepResult result;
  EXPECT_TRUE(stream->Read(&result));
  EXPECT_FALSE(stream->Read(&result));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("`step` must be 2"));
  EXPECT_THAT(Warmup(1).error_message(), HasSubstr("expected Configure"));
}

TEST_F(ShardServerTest, AnUnreadablePlanEndsTheGroupByName) {
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  v1::StepPlan plan = PlanOf(1);
  plan.mutable_segments(0)->clear_what();
  ASSERT_TRUE(stream->Write(plan));
  v1::StepResult result;
  EXPECT_FALSE(stream->Read(&result));
  EXPECT_THAT(stream->Finish().error_message(), HasSubstr("segments.what"));
}

TEST_F(ShardServerTest, AFailedStepEndsTheStreamWithItsError) {
  control_.fail_at_step = 2;
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  ASSERT_TRUE(stream->Write(PlanOf(2)));
  v1::StepResult result;
  EXPECT_TRUE(stream->Read(&result));
  EXPECT_FALSE(stream->Read(&result));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "step failed");
}

TEST_F(ShardServerTest, ACancelledDriverLeavesTheSeatToTheNext) {
  StartLoaded();
  Form(1);
  {
    grpc::ClientContext context;
    auto stream = stub_->Execute(&context);
    ASSERT_TRUE(stream->Write(PlanOf(1)));
    v1::StepResult result;
    ASSERT_TRUE(stream->Read(&result));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  ASSERT_TRUE(control_.WaitForCall("Reset", 2));  // opened, then freed by the cancel
  EXPECT_EQ(Configure(ConfigureOf(2)).error_message(), "");
}

TEST_F(ShardServerTest, MorePlansThanTheQueueHoldsAreHeldBackNotLostNorReordered) {
  control_.Set(&FakeEngine::Control::hold_steps, true);
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  constexpr std::uint64_t kPlans = 2000;
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  for (std::uint64_t step = 2; step <= kPlans; ++step) {
    v1::StepPlan idle = PlanOf(step);
    idle.clear_segments();
    ASSERT_TRUE(stream->Write(idle));
  }
  stream->WritesDone();
  control_.Set(&FakeEngine::Control::hold_steps, false);
  std::uint64_t results = 0;
  v1::StepResult result;
  while (stream->Read(&result)) EXPECT_EQ(result.step(), ++results);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(results, kPlans);
}

TEST_F(ShardServerTest, StopInterruptsAHangingStep) {
  control_.Set(&FakeEngine::Control::hold_steps, true);
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  ASSERT_TRUE(control_.WaitForCall("Execute"));
  server_->Stop();
  v1::StepResult result;
  while (stream->Read(&result)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
}

// It is cancelled with the end of the server, and answers that after it.
TEST_F(ShardServerTest, AStreamThatRestsHearsOfTheStop) {
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  v1::StepResult result;
  ASSERT_TRUE(stream->Read(&result));
  server_->Stop();
  EXPECT_FALSE(stream->Read(&result));
  const grpc::StatusCode code = stream->Finish().error_code();
  EXPECT_TRUE(code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::UNAVAILABLE) << code;
}

}  // namespace
}  // namespace penstock::shard
