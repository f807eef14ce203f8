#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "common/status.h"
#include "penstock/v1/ranks.grpc.pb.h"
#include "shard/tgi/rank_meeting.h"

namespace penstock::shard {
namespace {

using Reactor = BidiCall<v1::Arrival, v1::Verdict>;

constexpr std::uint64_t kLongestPatienceMs = 24ull * 3600 * 1000;

// One rank's stream. Verdicts wait in an outbox that is bounded by the rank's arrivals.
class MeetReactor final : public Reactor, public std::enable_shared_from_this<MeetReactor> {
 public:
  explicit MeetReactor(MeetingPlace& place) : place_(place) {}

  void OnStart() override { StartRead(&incoming_); }

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
    const auto patience =
        std::chrono::milliseconds(std::min(incoming_.patience_ms(), kLongestPatienceMs));
    arrival.deadline = SteadyNow() + patience;
    place_.Meet(std::move(arrival),
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
    if (rank_.has_value()) place_.Leave(*rank_);
    std::lock_guard lock(mutex_);
    ending_ = true;
    Pump();
  }

  // Under mutex_.
  void Pump() {
    if (writing_ || finished_) return;
    if (!outbox_.empty() && !ending_) {
      writing_ = true;
      StartWrite(outbox_.front());
      return;
    }
    if (!ending_) return;
    finished_ = true;
    Finish(grpc::Status::OK);
  }

  MeetingPlace& place_;
  v1::Arrival incoming_;               // owned by the read in flight
  std::optional<std::uint32_t> rank_;  // reads only

  std::mutex mutex_;
  std::deque<v1::Verdict> outbox_;  // front: being written when writing_
  bool writing_ = false;
  bool ending_ = false;
  bool finished_ = false;
};

class RankMeetingService final : public ServedService {
 public:
  explicit RankMeetingService(MeetingPlace& place) : place_(place) {}

  grpc::Service& Registered() override { return service_; }
  void Listen(CallQueue& queue) override {
    Serve<Reactor>(service_, &v1::RankMeeting::AsyncService::RequestMeet, queue,
                   [this] { return std::make_shared<MeetReactor>(place_); });
  }

 private:
  MeetingPlace& place_;
  v1::RankMeeting::AsyncService service_;
};

}  // namespace

std::unique_ptr<ServedService> MakeRankMeetingService(MeetingPlace& place) {
  return std::make_unique<RankMeetingService>(place);
}

}  // namespace penstock::shard
