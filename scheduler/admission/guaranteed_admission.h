// AdmissionMode::kGuaranteed: a request is admitted only if the KV blocks of its worst case (prompt
// + max_new_tokens, rounded up) can be reserved. It is never preempted and never waits for memory.
#pragma once

#include "scheduler/admission/admission_policy.h"

namespace penstock::scheduler {

class GuaranteedAdmission final : public AdmissionPolicy {
 public:
  using AdmissionPolicy::AdmissionPolicy;

  std::uint64_t TokensToReserve(const Work& work) const override {
    return WorstCaseTokens(work.request);
  }
  bool MayBePreempted(const Work&) const override { return false; }
};

}  // namespace penstock::scheduler
