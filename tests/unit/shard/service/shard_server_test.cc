// A server and the formation of its group.
#include "shard/service/shard_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/unit/shard/service/shard_server_fixture.h"

namespace penstock::shard {
namespace {

using testing::HasSubstr;

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
  // A second name keeps the socket after the first server has unlinked it: a stale socket.
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
    EXPECT_THAT(Message(server.status()), HasSubstr("must be an absolute path"));
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

TEST_F(ShardServerTest, WatchLoadReportsTheEndAndTheError) {
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
  EXPECT_EQ(warm_.blocks(0), 8u);
  EXPECT_EQ(warm_.step_times(0).nanoseconds(), 1000u);
  EXPECT_THAT(Commit(1, 8).error_message(), HasSubstr("expected Execute"));
}

TEST_F(ShardServerTest, MoreBlocksThanWarmupGaveAreRefused) {
  StartLoaded();
  ASSERT_TRUE(Configure(ConfigureOf(1)).ok());
  ASSERT_TRUE(Warmup(1).ok());
  EXPECT_THAT(Commit(1, 9).error_message(), HasSubstr("`blocks[0]` must be from 1 to 8"));
}

}  // namespace
}  // namespace penstock::shard
