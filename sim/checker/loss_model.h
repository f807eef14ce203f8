// Checks what happens to the requests of a lost group (guarantee G10). A request waits for a group
// that computes the same bits; if there is none, it waits at most recovery_timeout. A request that
// was present at two losses runs alone on its group, and fails at the next loss.
#pragma once

#include <cstddef>
#include <map>
#include <set>

#include "common/time.h"
#include "scheduler/config.h"
#include "scheduler/output.h"
#include "sim/checker/event_oracle.h"
#include "sim/checker/findings.h"
#include "sim/checker/group_model.h"
#include "sim/checker/request_model.h"

namespace penstock::sim {

class LossModel {
 public:
  // All references must outlive the object. `alive`: requests that have not ended.
  LossModel(const scheduler::Config& config, std::map<RequestId, RequestModel>& requests,
            const std::set<RequestId>& alive, const std::map<GroupId, GroupModel>& groups,
            EventOracle& oracle, Findings& findings)
      : config_(config),
        requests_(requests),
        alive_(alive),
        groups_(groups),
        oracle_(oracle),
        findings_(findings) {}

  bool recovers() const { return config_.recovery_timeout > Duration(0); }
  // The group of the request is lost. False: the request fails.
  bool Lose(RequestModel& request, bool in_order);
  // Groups came or went.
  void SetDeadlines(Time now);
  void FailOverdue(Time now);
  // Whether a suspect stays alone if the request joins.
  bool MayJoin(const RequestModel& request, const GroupModel& group) const;
  // Call before the group has it.
  void TakeAdmission(RequestModel& request, const GroupModel& group) const;
  void TakeDecision(const Decision& decision, const RequestModel& request);
  // All decisions of the input were taken.
  void CheckDecisions();

 private:
  const scheduler::Config& config_;
  std::map<RequestId, RequestModel>& requests_;
  const std::set<RequestId>& alive_;
  const std::map<GroupId, GroupModel>& groups_;
  EventOracle& oracle_;
  Findings& findings_;
  std::size_t untold_ = 0;  // losses of this input without a decision
};

}  // namespace penstock::sim
