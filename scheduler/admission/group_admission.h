// Whether one replica group can run a request: ever, now, and in the step being composed.
//
// Reads the state of the group; changes only what it owns, the rules of static batches and of
// TGI's admission gate. Not synchronised; one owner, the GroupScheduler.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/plan/group.h"
#include "scheduler/admission/admission_gate.h"
#include "scheduler/admission/admission_policy.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/admission/static_batch.h"
#include "scheduler/config.h"
#include "scheduler/kv/prefix_sharing.h"
#include "scheduler/order/waiting_request.h"
#include "scheduler/preemption.h"
#include "scheduler/step/padded_layout.h"
#include "scheduler/step/sequence_table.h"
#include "scheduler/step/step_draft.h"

namespace penstock::scheduler {

// What admission reads of its group.
struct GroupView {
  const SequenceTable& table;
  const PrefixSharing& sharing;
  const Preemption& preemption;
  const StepDraft& draft;
  PaddedLayout& layout;  // computes in its own memory
};

class GroupAdmission {
 public:
  // `policy` and the parts of `group` must outlive the object.
  GroupAdmission(const Config& config, const GroupCapacity& capacity, const AdmissionPolicy& policy,
                 const GroupView& group);

  // Whether the request can ever run here, and why not.
  bool Fits(const Arrival& arrival) const { return policy_.Fits(arrival); }
  std::optional<Refusal> WhyNeverFits(const Arrival& arrival) const {
    return policy_.WhyNeverFits(arrival);
  }
  // The deficit that prevents its admission now, apart from the budget of the step.
  std::optional<Shortage> Check(const Work& work) const;
  // The deficit in the budget of the step being composed.
  std::optional<Shortage> CheckStep(const Work& work) const;
  // The prefix that another sequence is about to compute and that the request should wait for.
  std::optional<AwaitedPrefix> CheckPrefix(const Work& work) const {
    return group_.sharing.WhatToAwait(work, group_.draft.step());
  }
  // Leading tokens of the request that the prefix cache has.
  std::uint32_t CachedTokens(const Work& work) const;

  // A request that cannot be admitted does not stop later ones from being tried.
  bool Selective() const { return batch_.Selective(group_.table.running()); }
  // Minimum number of requests to admit together in the step being composed; below 2: any.
  std::uint32_t MinNewcomers() const { return gate_.MinNewcomers(group_.table.running()); }

  // Requests that would be admitted together.
  struct Trial {
    std::uint64_t prefill_left = 0;
    // Sums over the requests added so far.
    std::uint32_t count = 0;
    std::uint32_t rows = 0;
    std::uint32_t blocks = 0;
    std::uint32_t window_blocks = 0;
    std::uint64_t tokens = 0;
    std::vector<std::uint64_t> positions;  // greatest length of each
  };
  Trial BeginTrial() const;
  // Adds the request if it fits beside those added before.
  bool AddTo(Trial& trial, const Work& work) const;

  // Called as the next step is composed. EndStep: `made` if it has a plan.
  void BeginStep() { batch_.BeginStep(group_.table.running()); }
  void OnAdmitted(const Work& work) { batch_.Add(work); }
  void EndStep(bool made);

 private:
  // A suspect runs alone on its group.
  std::optional<Shortage> CheckAlone(const Work& work) const;
  GroupState StateFor(const Work& work) const;

  const Config config_;
  const GroupCapacity capacity_;
  const AdmissionPolicy& policy_;
  const GroupView group_;
  AdmissionGate gate_;
  StaticBatch batch_;
};

}  // namespace penstock::scheduler
