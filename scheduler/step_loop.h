// Makes every step plan that can be made, and admits waiting requests into them (guarantee G4).
//
// Not synchronised; one owner, the Scheduler.
#pragma once

#include <cstdint>
#include <optional>

#include "common/time.h"
#include "scheduler/admission_queue.h"
#include "scheduler/group_scheduler.h"
#include "scheduler/output.h"
#include "scheduler/replica_groups.h"

namespace penstock::scheduler {

class StepLoop {
 public:
  // Both must outlive the object.
  StepLoop(ReplicaGroups& groups, AdmissionQueue& queue) : groups_(groups), queue_(queue) {}

  // Each request is admitted to the group that suits it best, or to an idle group if that one is
  // busy.
  void Run(Time now, Outputs& out);

 private:
  void MakeSteps(Outputs& out);
  bool MakeStep(GroupScheduler& group, Outputs& out);
  bool TooFewNewcomers(const GroupScheduler& group, Outputs& out);
  bool AdmitNext(GroupScheduler& group, Outputs& out);
  WaitingRequest* Front(const GroupScheduler& group);
  WaitingRequest* Candidate(const GroupScheduler& group);
  void Defer(WaitingRequest& request, const Shortage& shortage, const GroupScheduler& group,
             Outputs& out);

  ReplicaGroups& groups_;
  AdmissionQueue& queue_;
  Reach reach_ = Reach::kAll;
  Time now_;
  std::uint64_t last_sequence_ = 0;
};

}  // namespace penstock::scheduler
