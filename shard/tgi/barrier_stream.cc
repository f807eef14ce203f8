#include "shard/tgi/barrier_stream.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "common/status.h"
#include "penstock/v1/ranks.grpc.pb.h"

namespace penstock::shard {
namespace {

constexpr std::uint64_t kLongestTimeoutMs = 24ull * 3600 * 1000;

class BarrierService final : public v1::RankBarrier::Service {
 public:
  explicit BarrierService(RootBarrier& barrier) : barrier_(barrier) {}

  // The stream of one rank, on a thread of its own. Verdicts come under the lock of the barrier, so
  // one at a time. A write does not wait for the rank: it has few arrivals, and gRPC buffers more.
  grpc::Status Arrive(grpc::ServerContext*,
                      grpc::ServerReaderWriter<v1::Verdict, v1::Arrival>* stream) override {
    std::optional<std::uint32_t> rank;
    for (v1::Arrival wire; stream->Read(&wire);) {
      if (!rank.has_value()) rank = wire.rank();
      RankArrival arrival;
      arrival.rank = *rank;
      arrival.call = wire.call();
      arrival.value = wire.value();
      arrival.detail = wire.detail();
      arrival.lost = wire.lost();
      arrival.deadline =
          SteadyNow() + std::chrono::milliseconds(std::min(wire.timeout_ms(), kLongestTimeoutMs));
      barrier_.Arrive(std::move(arrival),
                      [stream, ticket = wire.ticket()](const RankVerdict& given) {
                        v1::Verdict verdict;
                        verdict.set_ticket(ticket);
                        verdict.set_code(static_cast<int>(given.status.code()));
                        verdict.set_message(Message(given.status));
                        verdict.set_least(given.least);
                        verdict.set_group(given.group);
                        stream->Write(verdict);
                      });
    }
    if (rank.has_value()) barrier_.Leave(*rank);  // no verdict comes after it
    return grpc::Status::OK;
  }

 private:
  RootBarrier& barrier_;
};

constexpr int kReconnectMs = 100;

// One stream to rank 0. Lives until OnDone.
class BarrierStream final : public grpc::ClientBidiReactor<v1::Arrival, v1::Verdict>,
                            public std::enable_shared_from_this<BarrierStream> {
 public:
  void Start(v1::RankBarrier::Stub& stub) {
    self_ = shared_from_this();
    stub.async()->Arrive(&context_, this);
    AddHold();  // writes may start outside of callbacks
    StartRead(&incoming_);
    StartCall();
  }

  // Returns false, and does not take `done`, if the stream has ended.
  bool Send(const RankArrival& arrival, VerdictCallback& done) {
    std::lock_guard lock(mutex_);
    if (ended_) return false;
    v1::Arrival wire;
    wire.set_ticket(++tickets_);
    wire.set_rank(arrival.rank);
    wire.set_call(arrival.call);
    wire.set_value(arrival.value);
    wire.set_detail(arrival.detail);
    wire.set_lost(arrival.lost);
    const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::max(Duration(0), arrival.deadline - SteadyNow()));
    wire.set_timeout_ms(static_cast<std::uint64_t>(timeout.count()));
    waiting_[tickets_] = std::move(done);
    outbox_.push_back(std::move(wire));
    Pump();
    return true;
  }

  void Cancel() { context_.TryCancel(); }

  void WaitDone() {
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [this] { return done_; });
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End();
      return;
    }
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
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    outbox_.pop_front();
    if (ok) Pump();
  }

  void OnDone(const grpc::Status&) override {
    End();
    const std::shared_ptr<BarrierStream> self = std::move(self_);
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    done_changed_.notify_all();
  }

 private:
  // Under mutex_.
  void Pump() {
    if (writing_ || ended_ || outbox_.empty()) return;
    writing_ = true;
    StartWrite(&outbox_.front());
  }

  // Ends writing and answers all waiting arrivals. Only the first call does something.
  void End() {
    std::map<std::uint64_t, VerdictCallback> waiting;
    {
      std::lock_guard lock(mutex_);
      if (ended_) return;
      ended_ = true;
      waiting.swap(waiting_);
    }
    context_.TryCancel();
    RemoveHold();
    for (auto& [_, answer] : waiting) {
      answer({absl::UnavailableError("rank 0 cannot be reached"), 0, {}});
    }
  }

  grpc::ClientContext context_;
  std::shared_ptr<BarrierStream> self_;  // until OnDone
  v1::Verdict incoming_;

  std::mutex mutex_;
  std::condition_variable done_changed_;
  std::deque<v1::Arrival> outbox_;  // front: being written when writing_
  std::map<std::uint64_t, VerdictCallback> waiting_;
  std::uint64_t tickets_ = 0;
  bool writing_ = false;
  bool ended_ = false;
  bool done_ = false;
};

class RemoteBarrier final : public RankBarrier {
 public:
  explicit RemoteBarrier(const std::string& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
    stub_ = v1::RankBarrier::NewStub(
        grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
  }
  ~RemoteBarrier() override { Stop(); }

  void Arrive(RankArrival arrival, VerdictCallback done) override {
    std::lock_guard lock(mutex_);
    if (stopped_) {
      done({absl::CancelledError("the shard is stopping"), 0, {}});
      return;
    }
    if (stream_ != nullptr && stream_->Send(arrival, done)) return;
    stream_ = std::make_shared<BarrierStream>();
    stream_->Start(*stub_);
    if (stream_->Send(arrival, done)) return;
    done({absl::UnavailableError("rank 0 cannot be reached"), 0, {}});
  }

  void Stop() override {
    std::shared_ptr<BarrierStream> stream;
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
  std::unique_ptr<v1::RankBarrier::Stub> stub_;
  std::mutex mutex_;
  std::shared_ptr<BarrierStream> stream_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeBarrierService(RootBarrier& barrier) {
  return std::make_unique<BarrierService>(barrier);
}

std::unique_ptr<RankBarrier> MakeRemoteBarrier(const std::string& socket) {
  return std::make_unique<RemoteBarrier>(socket);
}

}  // namespace penstock::shard
