// The stream of a driver: plans, results and its end.
#include "tests/unit/shard/service/shard_server_fixture.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

TEST_F(ShardServerTest, ExecuteAnswersEachPlanOnceInOrder) {
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  // The second plan is sent before the first result is read.
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

TEST_F(ShardServerTest, AStepBeginsBeforeTheResultOfTheOneBefore) {
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
  // The third step begins after the second. The notice of the second gives one result, the end of
  // the stream the other.
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
  for (const auto& ready : control_.ready) ready();  // too late, which is harmless
  control_.ready.clear();
}

TEST_F(ShardServerTest, StepsInFlightAreCollectedBeforeAStepThatCannotRunAhead) {
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

TEST_F(ShardServerTest, OtherRanksAnswerOnlyTheDigest) {
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
  // The first driver is not affected.
  ASSERT_TRUE(first->Write(PlanOf(2)));
  ASSERT_TRUE(first->Read(&result));
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
}

TEST_F(ShardServerTest, AnInvalidPlanEndsTheGroupAndIsNamed) {
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

TEST_F(ShardServerTest, AMalformedPlanEndsTheGroupAndIsNamed) {
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

TEST_F(ShardServerTest, ACancelledDriverGivesUpItsLease) {
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

TEST_F(ShardServerTest, ADriverGivesUpItsLeaseEvenIfTheMailboxIsFull) {
  control_.Set(&FakeEngine::Control::hold_steps, true);
  StartLoaded();
  Form(1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Execute(&context);
  ASSERT_TRUE(stream->Write(PlanOf(1)));
  ASSERT_TRUE(control_.WaitForCall("Execute"));
  while (state_->thread.Post([] {})) {
  }
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // The cancellation has reached the shard before this answer.
  grpc::ClientContext question;
  SetDeadline(question);
  v1::DescribeResponse answer;
  ASSERT_TRUE(stub_->Describe(&question, {}, &answer).ok());
  control_.Set(&FakeEngine::Control::hold_steps, false);
  ASSERT_TRUE(control_.WaitForCall("Reset", 2));  // opened, then freed by the cancel
  EXPECT_EQ(Configure(ConfigureOf(2)).error_message(), "");
}

TEST_F(ShardServerTest, PlansThatDoNotFitIntoTheQueueWaitInOrder) {
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

// The server cancels it when it stops.
TEST_F(ShardServerTest, AnIdleStreamIsCancelledByStop) {
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
