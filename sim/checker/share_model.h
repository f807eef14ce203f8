// Fair shares between tenants (G11). Counts what each account was served, from inputs and outputs
// alone: the prompt tokens that the first start of a request computes, and twice its reported
// tokens, over the weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/output.h"
#include "sim/checker/findings.h"
#include "sim/checker/group_model.h"
#include "sim/checker/request_model.h"

namespace penstock::sim {

class ShareModel {
 public:
  // All references must outlive the object. `alive`: requests that have not ended.
  ShareModel(const std::map<RequestId, RequestModel>& requests, const std::set<RequestId>& alive,
             Findings& findings)
      : requests_(requests), alive_(alive), findings_(findings) {}

  bool several() const { return accounts_.size() > 1; }
  // The turn of a waiting request's account: the smallest is next.
  std::pair<std::uint64_t, std::uint64_t> TurnOf(const RequestModel& request) const;

  // It is the turn of the request's account on this group.
  bool IsTurn(const RequestModel& request, const GroupModel& group) const {
    const std::string* const turn = Turn(&group);
    return turn != nullptr && *turn == request.arrival.account;
  }

  // A request comes to the queue, one comes back that yielded, and one that waits there leaves
  // without a group.
  void Arrive(const RequestModel& request);
  void Return(const RequestModel& request);
  void Leave(const RequestModel& request);
  // Call before the walk over the decisions of these outputs.
  void TakeOutputs(const scheduler::Outputs& out);
  // A request that is no restart is admitted. `in_turn`: it must be its account's turn.
  void Admit(const RequestModel& request, const GroupModel& group, bool in_turn);
  // No account that waits was served more than another one by more than its bound.
  void CheckBound() const;

 private:
  struct Account {
    std::uint64_t served = 0;  // in parts of work / weight
    std::uint32_t weight = 0;
    // The most that it may have been served more than any other account that waits: the charge of
    // its newest admission, and the outputs that its requests might have since then.
    std::uint64_t ahead = 0;
    std::map<std::uint64_t, RequestId> waiting;  // no restarts; in order of coming
  };

  void Enter(Account& account, const RequestModel& request, std::uint64_t floor);
  std::uint64_t Floor() const;
  void Charge(Account& account, std::uint64_t work) const;
  std::uint64_t OutputsLeft(const std::string& account) const;
  const std::string* Turn(const GroupModel* group) const;

  const std::map<RequestId, RequestModel>& requests_;
  const std::set<RequestId>& alive_;
  Findings& findings_;
  std::map<std::string, Account> accounts_;
  std::optional<std::string> last_;            // the account that waited last
  std::map<RequestId, std::uint32_t> cached_;  // of the starts of these outputs
  // An account was passed over because no request of it fits a group, or a weight has changed.
  bool uneven_ = false;
};

}  // namespace penstock::sim
