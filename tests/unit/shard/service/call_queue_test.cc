// The end of a server's calls, each at a moment of the test's choice.
#include "shard/service/call_queue.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "shard/service/served_call.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::shard {
namespace {

namespace health = grpc::health::v1;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What calls have been told, in order.
class Notes {
 public:
  void Add(const std::string& note) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(note);
    changed_.notify_all();
  }
  bool Await(const std::string& note) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(10), [&] {
      return std::find(notes_.begin(), notes_.end(), note) != notes_.end();
    });
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> notes_;
};

// Writes down what it is told and ends when the test says so.
class HeldCall final : public WriteCall<health::HealthCheckRequest, health::HealthCheckResponse> {
 public:
  explicit HeldCall(Notes& notes) : notes_(notes) {}
  ~HeldCall() override { notes_.Add("gone"); }

  void End() { Finish(grpc::Status::CANCELLED); }

  // Of the queue's thread, before the next event.
  std::function<void()> in_start = [] {};
  std::function<void()> in_cancel = [] {};

 private:
  void OnStart() override {
    notes_.Add("started");
    in_start();
  }
  void OnCancel() override {
    notes_.Add("cancelled");
    in_cancel();
  }
  void OnDone() override { notes_.Add("done"); }

  Notes& notes_;
};

class CallQueueTest : public testing::Test {
 protected:
  ~CallQueueTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
    watch_.reset();
  }

  bool Build(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    queue_ = std::make_unique<CallQueue>(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    return server_ != nullptr;
  }

  // A server that has taken one call. `prepare` sees it before it is offered.
  void TakeCall(const std::function<void(HeldCall&)>& prepare = [](HeldCall&) {}) {
    const std::string address = "unix:" + (folder_ / "socket");
    ASSERT_TRUE(Build(address));
    Serve<HeldCall>(service_, &health::Health::AsyncService::RequestWatch, *queue_, [=, this] {
      auto call = std::make_shared<HeldCall>(notes_);
      if (std::exchange(made_, true)) return call;
      prepare(*call);
      call_ = call;
      return call;
    });
    queue_->Start();
    stub_ =
        health::Health::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    context_.set_deadline(std::chrono::system_clock::now() + seconds(20));
    watch_ = stub_->Watch(&context_, {});
    ASSERT_TRUE(notes_.Await("started"));
  }

  void StopServer() { server_->Shutdown(std::chrono::system_clock::now()); }

  // What the client hears in the end.
  grpc::StatusCode Heard() {
    health::HealthCheckResponse response;
    EXPECT_FALSE(watch_->Read(&response));
    return watch_->Finish().error_code();
  }

  const TempFolder folder_;
  Notes notes_;
  health::Health::AsyncService service_;
  std::unique_ptr<CallQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  bool made_ = false;
  std::weak_ptr<HeldCall> call_;
  std::unique_ptr<health::Health::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<health::HealthCheckResponse>> watch_;
};

TEST_F(CallQueueTest, ACallMayEndAfterTheQueueWasClosed) {
  TakeCall();
  StopServer();
  ASSERT_TRUE(notes_.Await("cancelled"));
  queue_->Close(seconds(20));
  call_.lock()->End();
  queue_->Join();
  // The second is the one that was expected next.
  EXPECT_THAT(notes_.all(),
              testing::UnorderedElementsAre("started", "cancelled", "done", "gone", "gone"));
  EXPECT_NE(Heard(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

// Events wait in the queue, among them the cancellation of a call, which answers it.
TEST_F(CallQueueTest, ACallMayHearOfItsEndAfterTheQueueWasClosed) {
  TakeCall([this](HeldCall& call) {
    call.in_start = [this] { ASSERT_TRUE(notes_.Await("closed")); };
    call.in_cancel = [&call] { call.End(); };
  });
  StopServer();
  queue_->Close(seconds(20));
  notes_.Add("closed");
  queue_->Join();
  EXPECT_THAT(notes_.all(), testing::UnorderedElementsAre("started", "closed", "cancelled", "done",
                                                          "gone", "gone"));
  EXPECT_NE(Heard(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(CallQueueTest, ACallThatNeverEndsIsGivenUpAfterTheGrace) {
  TakeCall();
  StopServer();
  queue_->Close(milliseconds(50));
  queue_->Join();
  EXPECT_EQ(call_.lock(), nullptr);
  EXPECT_THAT(notes_.all(), testing::Not(testing::Contains("done")));
  EXPECT_NE(Heard(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(CallQueueTest, WithoutACallItEndsAtOnceWhateverTheGrace) {
  ASSERT_TRUE(Build("unix:" + (folder_ / "socket")));
  queue_->Start();
  StopServer();
  queue_->Close(std::chrono::hours(1));
  queue_->Join();
}

TEST_F(CallQueueTest, NeedsNoServerThatCouldStart) {
  ASSERT_FALSE(Build("unix:" + (folder_ / "no-folder/socket")));
  queue_->Close(std::chrono::hours(1));
  queue_->Join();
}

}  // namespace
}  // namespace penstock::shard
