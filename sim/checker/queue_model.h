// The order of waiting requests and of the victims of preemption (G6, G7), and whose turn it is
// (G11). Exact: it names the one request that the core must choose. The order longest-prefix
// depends on the prefix cache, which no output shows, so only its bounds are checked
// (QueueModel::CountOvertakes).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "scheduler/config.h"
#include "scheduler/scheduler.h"
#include "sim/checker/findings.h"
#include "sim/checker/group_model.h"
#include "sim/checker/request_model.h"
#include "sim/checker/share_model.h"

namespace penstock::sim {

constexpr std::uint32_t kMaxPreemptions = 3;

class QueueModel {
 public:
  // All references must outlive the object. `alive`: requests that have not ended.
  QueueModel(const scheduler::Config& config, std::map<RequestId, RequestModel>& requests,
             const std::set<RequestId>& alive, Findings& findings)
      : config_(config), requests_(requests), alive_(alive), findings_(findings) {}

  ShareModel& shares() { return shares_; }
  std::uint32_t MaxOvertakes() const;
  // It came to the queue, and the core says so: their order is that of these decisions.
  void Enter(RequestModel& request);
  void TakeQueued(RequestModel& request);
  // A group made a step.
  void CountStep() { ++steps_; }
  // Order learned: it waited as many steps as a request may wait, and is next.
  bool IsDue(const RequestModel& request) const;
  // Call before the request changes its state.
  void TakePreemption(const Decision& decision, RequestModel& request, const GroupModel& group);
  void CountOvertakes(const RequestModel& admitted, const GroupModel& group);
  // G6 as a number of steps, for first-come order with full reservations and one account; else 0.
  std::uint64_t MostSteps() const;
  // A result of the only group arrived.
  void CountWaiting(const GroupCapacity& capacity);
  // What ran is computed again after a loss, so all bounds of steps begin now.
  void BeginBounds();
  void CheckOrder(const RequestModel& admitted, const GroupModel& group) const;
  // Batching::kStatic: a batch is admitted in one step, with equal lengths if it must be.
  void CheckBatch(const RequestModel& admitted, const GroupModel& group, const Decision& decision);
  // The gauge of waiting requests by reason counts each of them once.
  void CheckReasons(const scheduler::Snapshot& state) const;

 private:
  void CheckVictim(const RequestModel& victim) const;
  // The request gives its place to one that is due.
  void TakeYield(const Decision& decision, RequestModel& request, const GroupModel& group);

  struct Batch {
    std::optional<StepId> step;
    std::size_t prompt = 0;
    std::uint32_t output = 0;
    friend bool operator==(const Batch&, const Batch&) = default;
  };
  const scheduler::Config& config_;
  std::map<RequestId, RequestModel>& requests_;
  const std::set<RequestId>& alive_;
  Findings& findings_;
  ShareModel shares_{requests_, alive_, findings_};
  std::map<std::optional<GroupId>, Batch> batches_;
  std::uint64_t places_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace penstock::sim
