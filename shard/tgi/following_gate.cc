#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "common/status.h"
#include "penstock/v1/ranks.grpc.pb.h"
#include "shard/tgi/rank_meeting.h"

namespace penstock::shard {
namespace {

constexpr int kReconnectMs = 100;

// One stream to rank 0. Keeps itself alive until all its operations have ended.
class MeetStream final : public std::enable_shared_from_this<MeetStream> {
 public:
  MeetStream(v1::RankMeeting::Stub& stub, grpc::CompletionQueue& queue)
      : call_(stub.PrepareAsyncMeet(&context_, &queue)) {}

  void Start() {
    self_ = shared_from_this();
    call_->StartCall(&start_);
  }

  // False: the stream has ended, nothing was taken.
  bool Send(const RankArrival& arrival, VerdictCallback& answer) {
    std::lock_guard lock(mutex_);
    if (ended_) return false;
    v1::Arrival wire;
    wire.set_ticket(++tickets_);
    wire.set_rank(arrival.rank);
    wire.set_call(arrival.call);
    wire.set_value(arrival.value);
    wire.set_detail(arrival.detail);
    wire.set_lost(arrival.lost);
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::max(Duration(0), arrival.deadline - SteadyNow()));
    wire.set_patience_ms(static_cast<std::uint64_t>(patience.count()));
    waiting_[tickets_] = std::move(answer);
    outbox_.push_back(std::move(wire));
    Pump();
    return true;
  }

  void Cancel() { context_.TryCancel(); }

  // After Cancel, or the end.
  void WaitDone() {
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [this] { return done_; });
  }

 private:
  using Step = MemberOperation<MeetStream>;

  void OnStarted(bool ok) {
    if (ok) call_->Read(&incoming_, &read_);
    OnWriteDone(ok);
    if (!ok) End();
  }

  void OnReadDone(bool ok) {
    if (!ok) return End();
    VerdictCallback answer;
    {
      std::lock_guard lock(mutex_);
      const auto found = waiting_.find(incoming_.ticket());
      if (found != waiting_.end()) {
        answer = std::move(found->second);
        waiting_.erase(found);
      }
    }
    if (answer) {
      answer({absl::Status(static_cast<absl::StatusCode>(incoming_.code()), incoming_.message()),
              incoming_.least(), incoming_.group()});
    }
    call_->Read(&incoming_, &read_);
  }

  void OnWriteDone(bool ok) {
    {
      std::lock_guard lock(mutex_);
      writing_ = false;
      if (ok) Pump();
    }
    LeaveIfOver();
  }

  void OnFinished(bool) {
    {
      std::lock_guard lock(mutex_);
      finished_ = true;
    }
    LeaveIfOver();
  }

  // A message is serialized by Write itself. Under mutex_.
  void Pump() {
    if (writing_ || ended_ || outbox_.empty()) return;
    writing_ = true;
    call_->Write(outbox_.front(), &write_);
    outbox_.pop_front();
  }

  // Once, when nothing more can be read: nothing is written any more, and what waits is told.
  void End() {
    std::map<std::uint64_t, VerdictCallback> waiting;
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      waiting.swap(waiting_);
    }
    context_.TryCancel();
    call_->Finish(&status_, &finish_);
    for (auto& [_, answer] : waiting) {
      answer({absl::UnavailableError("rank 0 cannot be reached"), 0, {}});
    }
  }

  void LeaveIfOver() {
    {
      std::lock_guard lock(mutex_);
      if (!finished_ || writing_) return;
      done_ = true;
    }
    done_changed_.notify_all();
    const std::shared_ptr<MeetStream> self = std::move(self_);
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::Arrival, v1::Verdict>> call_;
  Step start_{*this, &MeetStream::OnStarted};
  Step read_{*this, &MeetStream::OnReadDone};
  Step write_{*this, &MeetStream::OnWriteDone};
  Step finish_{*this, &MeetStream::OnFinished};
  std::shared_ptr<MeetStream> self_;  // until it is done
  v1::Verdict incoming_;
  grpc::Status status_;

  std::mutex mutex_;
  std::condition_variable done_changed_;
  std::deque<v1::Arrival> outbox_;  // bounded by the rank's calls
  std::map<std::uint64_t, VerdictCallback> waiting_;
  std::uint64_t tickets_ = 0;
  bool writing_ = true;  // the start is an operation of the sending side, too
  bool ended_ = false;
  bool finished_ = false;
  bool done_ = false;
};

class FollowingGate final : public RankGate {
 public:
  FollowingGate(const std::string& socket, std::function<grpc::CompletionQueue&()> queue)
      : queue_(std::move(queue)) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
    stub_ = v1::RankMeeting::NewStub(
        grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
  }
  ~FollowingGate() override { Stop(); }

  void Meet(RankArrival arrival, VerdictCallback answer) override {
    std::lock_guard lock(mutex_);
    if (stopped_) {
      answer({absl::CancelledError("the shard is stopping"), 0, {}});
      return;
    }
    if (stream_ != nullptr && stream_->Send(arrival, answer)) return;
    stream_ = std::make_shared<MeetStream>(*stub_, queue_());
    stream_->Start();
    if (stream_->Send(arrival, answer)) return;
    answer({absl::UnavailableError("rank 0 cannot be reached"), 0, {}});
  }

  void Stop() override {
    std::shared_ptr<MeetStream> stream;
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
      stream = std::exchange(stream_, nullptr);
    }
    if (stream == nullptr) return;
    stream->Cancel();
    stream->WaitDone();
  }

 private:
  std::unique_ptr<v1::RankMeeting::Stub> stub_;
  const std::function<grpc::CompletionQueue&()> queue_;
  std::mutex mutex_;
  std::shared_ptr<MeetStream> stream_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<RankGate> MakeFollowingGate(const std::string& socket,
                                            std::function<grpc::CompletionQueue&()> queue) {
  return std::make_unique<FollowingGate>(socket, std::move(queue));
}

}  // namespace penstock::shard
