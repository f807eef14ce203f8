#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/log.h"
#include "common/time.h"
#include "proto/plan_conversion.h"
#include "shard/service/shard_service.h"

namespace penstock::shard {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::StepPlan, v1::StepResult>;

constexpr const char* kQueueFull = "the shard is stopping, or its queue is full";

// One Execute stream: one plan in, one result out, in order.
//
// A gRPC thread converts each plan and posts it to the model thread. At most kMaxQueuedPlans plans
// wait there; then the stream is not read until one was taken, and gRPC's flow control stops the
// driver. The outbox of results is bounded by the same number. One write is in flight at a time.
//
// The stream ends with OK after the driver has half-closed it and the last result was sent. It ends
// with INVALID_ARGUMENT after an invalid plan, and with the error of the engine after a failed
// step.
//
// Life: Start posts the opening, then plans follow. Whatever ends the stream posts Close, once.
// Close frees the sequences and gives up the lease of the driver. Finish comes when the outbox is
// empty.
class ExecuteReactor final : public Reactor, public std::enable_shared_from_this<ExecuteReactor> {
 public:
  explicit ExecuteReactor(ServiceState& state) : state_(state) {}

  void Start() {
    self_ = shared_from_this();
    if (absl::Status begun = state_.formation.Begin(FormationCall::kExecute); !begun.ok()) {
      return Refuse(begun);
    }
    if (!state_.thread.Post([this] { state_.session.OpenExecute(); })) {
      PostClose(absl::UnavailableError(kQueueFull));
      return;
    }
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      PostClose(absl::OkStatus());
      return;
    }
    const Time received = SteadyNow();
    auto plan = proto::FromProto(incoming_);
    if (!plan.ok()) {
      log::Error("a malformed plan ends the group: " + Message(plan.status()));
      PostClose(plan.status());
      return;
    }
    if (!CountPlan()) return;
    const bool posted =
        state_.thread.Post([self = shared_from_this(), received,
                            plan = std::make_shared<const StepPlan>(*std::move(plan))] {
          self->RunPlan(plan, received);
        });
    if (posted) {
      ReadOn();
    } else {
      PostClose(absl::UnavailableError(kQueueFull));
    }
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    outbox_.pop_front();
    if (!ok) outbox_.clear();
    Pump();
  }

  void OnCancel() override { PostClose(absl::CancelledError("the driver cancelled the stream")); }

  void OnDone() override { self_.reset(); }

 private:
  // This stream has no lease, so a later cancellation must not end the lease of another one.
  void Refuse(const absl::Status& status) {
    {
      std::lock_guard lock(mutex_);
      ending_ = closed_ = true;
    }
    FinishWith(status);
  }

  // A step and how long its plan waited.
  struct Begun {
    StepId id;
    Duration queued{0};
  };

  // Returns false if the stream is ending. Then the caller drops the plan.
  bool CountPlan() {
    std::lock_guard lock(mutex_);
    if (ending_) return false;
    ++plans_;
    ++queued_;
    deepest_ = std::max(deepest_, plans_ - results_);
    return true;
  }

  // Called after the plan was posted, because another thread may read the next plan at once.
  void ReadOn() {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    if (queued_ < kMaxQueuedPlans) {
      StartRead(&incoming_);
    } else {
      read_paused_ = true;
    }
  }

  // Model thread.
  void RunPlan(const std::shared_ptr<const StepPlan>& plan, Time received) {
    if (!TakePlan()) return;
    const Begun step{plan->step, SteadyNow() - received};
    // At most one step may still run when the next is begun.
    if (!CollectDownTo(kMaxStepsBegun - 1)) return;
    const auto begun = state_.session.Begin(
        plan, [self = shared_from_this(), number = begun_count_ + 1] { self->PostReady(number); });
    if (!begun.ok()) return FailStep(step, begun.status());
    if (*begun) {
      ++begun_count_;
      begun_.push_back(step);
    } else if (CollectDownTo(0)) {
      Send(step, state_.session.Step(*plan));
    }
  }

  // Any thread: the device has finished the step that was begun as number `number`. The mailbox has
  // room unless it is closed, and then the result is not needed.
  void PostReady(std::uint64_t number) {
    state_.thread.Post([self = shared_from_this(), number] {
      if (self->closed_) return;
      const std::uint64_t later = self->begun_count_ - number;
      if (self->begun_.size() > later) self->CollectDownTo(static_cast<std::size_t>(later));
    });
  }

  // Model thread. Sends results of steps in flight, the oldest first, until `left` steps are left.
  // Returns false if a step failed. Then the stream is ending.
  bool CollectDownTo(std::size_t left) {
    while (begun_.size() > left) {
      const Begun step = begun_.front();
      begun_.pop_front();
      if (!Send(step, state_.session.Collect())) return false;
    }
    return true;
  }

  bool Send(const Begun& step, absl::StatusOr<StepResult> result) {
    if (!result.ok()) {
      FailStep(step, result.status());
      return false;
    }
    result->timings.queued = step.queued;
    auto message = std::make_unique<v1::StepResult>();
    proto::ToProto(*result, *message);
    std::lock_guard lock(mutex_);
    outbox_.push_back(std::move(message));
    ++results_;
    Pump();
    return true;
  }

  void FailStep(const Begun& step, const absl::Status& status) {
    log::Error("step " + std::to_string(step.id.value()) + " ends the group: " + Message(status));
    Close(status);
  }

  // Removes one plan from the queue. False: the stream is ending and the plan must be dropped.
  bool TakePlan() {
    std::lock_guard lock(mutex_);
    --queued_;
    if (read_paused_ && !ending_) {
      read_paused_ = false;
      StartRead(&incoming_);
    }
    return !ending_ || half_closed_;
  }

  // Any thread. Only the first reason to end is reported. After a half-close the queued plans still
  // run.
  void PostClose(const absl::Status& status) {
    {
      std::lock_guard lock(mutex_);
      if (ending_) {
        // A cancellation after the half-close drops the queued plans.
        half_closed_ = half_closed_ && status.ok();
        return;
      }
      ending_ = true;
      half_closed_ = status.ok();
    }
    // Only one stream has the lease, so at most one end waits in the mailbox.
    const bool posted =
        state_.thread.PostEnd([self = shared_from_this(), status] { self->Close(status); });
    if (!posted) FinishWith(status.ok() ? absl::UnavailableError("the shard is stopping") : status);
  }

  // Model thread. Runs once: later reasons and queued plans find `closed_`.
  void Close(const absl::Status& status) {
    if (status.ok() && !closed_ && !CollectDownTo(0)) return;
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
      half_closed_ = false;
      if (closed_) return;
      closed_ = true;
    }
    // The group stays usable if the driver left; any other end breaks it. The lease may end first,
    // because tasks of the next driver run after this one.
    const bool intact = status.ok() || absl::IsCancelled(status);
    state_.formation.End(FormationCall::kExecute, intact);
    state_.session.CloseExecute();
    begun_.clear();
    LogCounters();
    FinishWith(status);
  }

  void LogCounters() {
    std::lock_guard lock(mutex_);
    log::Debug("Execute ended: " + std::to_string(plans_) + " plans in, " +
               std::to_string(results_) + " results out, at most " + std::to_string(deepest_) +
               " in flight");
  }

  void FinishWith(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    final_ = status;
    Pump();
  }

  // Starts the next write, or finishes after the last one. Under mutex_.
  void Pump() {
    if (writing_ || finished_) return;
    if (!outbox_.empty()) {
      writing_ = true;
      StartWrite(outbox_.front().get());
      return;
    }
    if (!final_.has_value()) return;
    finished_ = true;
    Finish(ToGrpc(*final_));
  }

  ServiceState& state_;
  std::shared_ptr<ExecuteReactor> self_;  // until OnDone
  v1::StepPlan incoming_;                 // owned by the read in flight

  // The model thread's.
  std::deque<Begun> begun_;  // steps begun, not collected
  std::uint64_t begun_count_ = 0;

  std::mutex mutex_;
  std::deque<std::unique_ptr<v1::StepResult>> outbox_;  // front: being written when writing_
  bool writing_ = false;
  bool read_paused_ = false;
  bool ending_ = false;
  bool half_closed_ = false;  // ending, but plans that were read still run
  bool closed_ = false;
  bool finished_ = false;
  std::optional<absl::Status> final_;
  std::uint64_t plans_ = 0;
  std::uint64_t results_ = 0;
  std::uint64_t queued_ = 0;   // waiting for the model thread
  std::uint64_t deepest_ = 0;  // most plans without a result
};

}  // namespace

Reactor* StartExecute(ServiceState& state) {
  auto reactor = std::make_shared<ExecuteReactor>(state);
  reactor->Start();
  return reactor.get();
}

}  // namespace penstock::shard
