#include "shard/parallel/nccl/nccl_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "shard/parallel/local_communicator.h"
#include "tests/unit/shard/parallel/nccl/fake_nccl.h"

namespace penstock::shard {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

NcclOptions Options(milliseconds timeout = milliseconds(10'000)) {
  return {.rank = 0, .world = 1, .unique_id = "unique!!", .timeout = timeout};
}

class NcclCommunicatorTest : public testing::Test {
 protected:
  std::unique_ptr<Communicator> Join(const NcclOptions& options = Options()) {
    auto joined = JoinNcclGroup(options, nccl_, queue_);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined.ok() ? *std::move(joined) : nullptr;
  }
  absl::Status AwaitFailure(Communicator& communicator) {
    EXPECT_TRUE(nccl_.AwaitAbort(std::chrono::seconds(10)));
    return communicator.Health();
  }

  FakeQueue queue_;
  FakeNccl nccl_;
  float value_ = 1.0f;
};

TEST_F(NcclCommunicatorTest, EnqueuesCollectivesAndEndsInOrder) {
  auto communicator = Join();
  EXPECT_TRUE(communicator->AllReduceSum(&value_, 1).ok());
  float all = 0;
  EXPECT_TRUE(communicator->AllGather(&value_, sizeof value_, &all).ok());
  EXPECT_TRUE(communicator->Broadcast(&value_, sizeof value_, 0).ok());
  EXPECT_TRUE(communicator->Health().ok());
  communicator.reset();
  EXPECT_THAT(nccl_.calls, ElementsAre("join", "reduce", "gather", "broadcast"));
  EXPECT_EQ(nccl_.destroyed, 1);
  EXPECT_EQ(nccl_.aborted, 0);
}

TEST_F(NcclCommunicatorTest, WaitsWhileACallIsInProgress) {
  nccl_.in_progress = 5;
  auto communicator = Join();
  EXPECT_TRUE(communicator->AllReduceSum(&value_, 1).ok());
}

TEST_F(NcclCommunicatorTest, JoiningEndsAtItsDeadline) {
  nccl_.never_ready = true;
  const auto joined = JoinNcclGroup(Options(milliseconds(20)), nccl_, queue_);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.status().message(), "nccl, rank 0: joining: nothing for 20 ms");
  EXPECT_EQ(nccl_.aborted, 1) << "a rank that comes later must not wait for this one";
  EXPECT_EQ(nccl_.destroyed, 0);
}

TEST_F(NcclCommunicatorTest, ACollectiveThatHangsIsAbortedAtItsDeadline) {
  auto communicator = Join(Options(milliseconds(30)));
  queue_.Hang();
  ASSERT_TRUE(communicator->AllReduceSum(&value_, 1).ok()) << "enqueuing does not wait";
  const absl::Status status = AwaitFailure(*communicator);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another rank is stuck or gone"));
  EXPECT_EQ(nccl_.aborted, 1);
  EXPECT_EQ(communicator->AllReduceSum(&value_, 1), status) << "later calls fail at once";
  EXPECT_THAT(nccl_.calls, ElementsAre("join", "reduce"));
}

TEST_F(NcclCommunicatorTest, ASlowCollectiveMayUseItsDeadline) {
  auto communicator = Join();
  queue_.Hang();
  ASSERT_TRUE(communicator->AllReduceSum(&value_, 1).ok());
  queue_.Release();
  ASSERT_TRUE(communicator->AllReduceSum(&value_, 1).ok());
  EXPECT_TRUE(communicator->Health().ok());
  communicator.reset();
  EXPECT_EQ(nccl_.aborted, 0);
}

TEST_F(NcclCommunicatorTest, TheDeadlineHoldsForGraphsToo) {
  auto communicator = Join(Options(milliseconds(30)));
  queue_.Hang();
  ASSERT_TRUE(communicator->WatchQueued().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitFailure(*communicator)));
}

TEST_F(NcclCommunicatorTest, AnErrorOfAnotherRankIsFoundWhileWaiting) {
  auto communicator = Join();
  queue_.Hang();
  ASSERT_TRUE(communicator->AllReduceSum(&value_, 1).ok());
  nccl_.FailLater("remote process exited");
  const absl::Status status = AwaitFailure(*communicator);
  EXPECT_EQ(status.message(), "nccl, rank 0: remote process exited");
  EXPECT_EQ(nccl_.aborted, 1);
}

TEST_F(NcclCommunicatorTest, ARefusedCallAborts) {
  auto communicator = Join();
  nccl_.error_now = "invalid usage";
  const absl::Status status = communicator->Broadcast(&value_, sizeof value_, 0);
  EXPECT_EQ(status.message(), "nccl, rank 0: broadcast: invalid usage");
  EXPECT_EQ(nccl_.aborted, 1);
}

TEST_F(NcclCommunicatorTest, AbortFromAnotherThreadEndsAJoinInProgress) {
  auto communicator = Join();
  nccl_.never_ready = true;
  std::thread stopper([&] { communicator->Abort(); });
  const absl::Status status = communicator->AllReduceSum(&value_, 1);
  stopper.join();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(nccl_.aborted, 1);
  communicator.reset();
  EXPECT_EQ(nccl_.destroyed, 0) << "an abort has freed it";
}

TEST_F(NcclCommunicatorTest, NamesABadOption) {
  NcclOptions options = Options();
  options.unique_id = "short";
  EXPECT_EQ(JoinNcclGroup(options, nccl_, queue_).status().message(),
            "`unique id` must be 8 bytes. Given: 5 bytes");
  options = Options();
  options.rank = 1;
  EXPECT_EQ(JoinNcclGroup(options, nccl_, queue_).status().message(),
            "`rank` must be 0 to 0. Given: 1");
}

TEST_F(NcclCommunicatorTest, Rank0CreatesTheUniqueId) {
  LocalCommunicator control;
  const auto id = ShareUniqueId(nccl_, control);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(*id, "unique!!");
}

}  // namespace
}  // namespace penstock::shard
