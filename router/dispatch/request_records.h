// State, counts and scheduler decisions of the newest requests, for GET /requests/{id}. The number
// of requests is bounded: the oldest are dropped. So is the number of decisions of each: the first
// and the newest are kept.
//
// Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "router/engine.h"
#include "scheduler/output.h"

namespace penstock::router {

class RequestRecords {
 public:
  explicit RequestRecords(std::size_t max_requests = 1024, std::size_t max_decisions = 64)
      : max_requests_(max_requests), max_decisions_(max_decisions) {}

  void Add(RequestId request, const std::string& tenant, const std::string& client_id,
           Time arrived);
  void SetPromptTokens(RequestId request, std::uint32_t prompt_tokens);
  // Sets the state of a request that ended before it was sent to the scheduler.
  void SetState(RequestId request, const std::string& state);
  // Takes what the scheduler reported, in its order.
  void Take(std::span<const scheduler::Event> events, std::span<const Decision> decisions);

  // By client id (the tenant's newest of that name) or decimal request id. Another tenant's request
  // is found for an admin only: by its number, or the newest of the name.
  absl::StatusOr<RequestRecord> Find(const std::string& id, const std::string& tenant,
                                     bool admin = false) const;
  // Leaves out the ids of requests of other tenants, and of those that were dropped.
  void HideOthers(RequestRecord& record) const;
  // nullopt: it was dropped.
  std::optional<RequestRecord> Of(RequestId request) const;

 private:
  RequestRecord* At(RequestId request);  // null: dropped
  static void TakeDecision(RequestRecord& record, DecisionKind kind);
  void TakeEvent(const scheduler::Event& event);

  const std::size_t max_requests_;
  const std::size_t max_decisions_;
  mutable std::mutex mutex_;
  std::unordered_map<RequestId, RequestRecord> records_;
  std::unordered_map<std::string, RequestId> by_client_id_;  // see NameIn
  std::deque<RequestId> order_;                              // oldest first
};

}  // namespace penstock::router
