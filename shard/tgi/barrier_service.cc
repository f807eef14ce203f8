#include "shard/tgi/barrier_service.h"

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "common/status.h"
#include "penstock/v1/ranks.grpc.pb.h"

namespace penstock::shard {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::Arrival, v1::Verdict>;

constexpr std::uint64_t kLongestTimeoutMs = 24ull * 3600 * 1000;

// The stream of one rank. The outbox of verdicts is bounded by the number of the rank's arrivals.
class BarrierReactor final : public Reactor, public std::enable_shared_from_this<BarrierReactor> {
 public:
  explicit BarrierReactor(RootBarrier& barrier) : barrier_(barrier) {}

  void Start() {
    self_ = shared_from_this();
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End();
      return;
    }
    rank_ = incoming_.rank();
    RankArrival arrival;
    arrival.rank = incoming_.rank();
    arrival.call = incoming_.call();
    arrival.value = incoming_.value();
    arrival.detail = incoming_.detail();
    arrival.lost = incoming_.lost();
    const auto timeout =
        std::chrono::milliseconds(std::min(incoming_.timeout_ms(), kLongestTimeoutMs));
    arrival.deadline = SteadyNow() + timeout;
    barrier_.Arrive(std::move(arrival),
                    [self = shared_from_this(), ticket = incoming_.ticket()](
                        const RankVerdict& verdict) { self->Send(ticket, verdict); });
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    outbox_.pop_front();
    if (!ok) outbox_.clear();
    Pump();
  }

  void OnDone() override { self_.reset(); }

 private:
  void Send(std::uint64_t ticket, const RankVerdict& verdict) {
    v1::Verdict wire;
    wire.set_ticket(ticket);
    wire.set_code(static_cast<int>(verdict.status.code()));
    wire.set_message(Message(verdict.status));
    wire.set_least(verdict.least);
    wire.set_group(verdict.group);
    std::lock_guard lock(mutex_);
    if (ending_) return;
    outbox_.push_back(std::move(wire));
    Pump();
  }

  void End() {
    if (rank_.has_value()) barrier_.Leave(*rank_);
    std::lock_guard lock(mutex_);
    ending_ = true;
    Pump();
  }

  // Under mutex_.
  void Pump() {
    if (writing_ || finished_) return;
    if (!outbox_.empty() && !ending_) {
      writing_ = true;
      StartWrite(&outbox_.front());
      return;
    }
    if (!ending_) return;
    finished_ = true;
    Finish(grpc::Status::OK);
  }

  RootBarrier& barrier_;
  std::shared_ptr<BarrierReactor> self_;  // until OnDone
  v1::Arrival incoming_;                  // owned by the read in flight
  std::optional<std::uint32_t> rank_;     // reads only

  std::mutex mutex_;
  std::deque<v1::Verdict> outbox_;  // front: being written when writing_
  bool writing_ = false;
  bool ending_ = false;
  bool finished_ = false;
};

class BarrierService final : public v1::RankBarrier::CallbackService {
 public:
  explicit BarrierService(RootBarrier& barrier) : barrier_(barrier) {}

  Reactor* Arrive(grpc::CallbackServerContext*) override {
    auto reactor = std::make_shared<BarrierReactor>(barrier_);
    reactor->Start();
    return reactor.get();
  }

 private:
  RootBarrier& barrier_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeBarrierService(RootBarrier& barrier) {
  return std::make_unique<BarrierService>(barrier);
}

}  // namespace penstock::shard
