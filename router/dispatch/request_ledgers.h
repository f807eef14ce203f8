// The time ledgers of the open requests and of the newest that have ended.
//
// Thread-safe. The core's thread takes the lock once for each input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/dispatch/minute_sums.h"
#include "router/dispatch/time_ledger.h"
#include "router/engine.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::router {

class Metrics;

class RequestLedgers {
 public:
  // The metrics must outlive the ledgers. `max_ended`: the oldest beyond it are dropped.
  explicit RequestLedgers(Metrics& metrics, std::size_t max_ended = 1024)
      : metrics_(metrics), max_ended_(max_ended) {}

  // Begins a ledger with the times of `request` before the engine had it, at `now`.
  void Begin(RequestId id, const GenerationRequest& request, Time now);

  // Ids without a ledger, such as steps of a beam search, are ignored.
  void Enter(RequestId id, TimeKind kind, Time at);
  // The engine has given the last event. The time until Close is the socket's.
  void End(RequestId id, Time at);
  void Close(RequestId id, Time at);

  // What an input gave, in order and at its time.
  void Take(const scheduler::Input& input, const scheduler::Outputs& outputs);

  std::optional<LedgerView> View(RequestId id, Time now) const;
  // Adds the queue, and the sums of the last hour.
  void Describe(StepReport& report, Time now) const;

 private:
  struct Entry {
    RequestId id;
    std::string tenant;
    std::string client_id;
    TimeLedger ledger;
    bool ended = false;
  };
  using Kept = std::shared_ptr<Entry>;

  // All of these require the mutex.
  Entry* At(RequestId id);  // null: it has none
  void Retain(Entry& entry);
  void CloseOne(Entry& entry, Time at);
  void TakeDecision(const Decision& decision);
  void TakePlan(const scheduler::PlanOut& out);
  void TakeStep(const scheduler::StepDone& done, Time now);

  Metrics& metrics_;
  const std::size_t max_ended_;
  mutable std::mutex mutex_;
  std::unordered_map<RequestId, Kept> entries_;
  std::deque<RequestId> ended_;                 // oldest first
  std::map<GroupId, std::vector<Kept>> slots_;  // who runs there
  MinuteSums hour_;
};

}  // namespace penstock::router
