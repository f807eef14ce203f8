// AdmissionMode::kOptimistic, and AdmissionMode::kMixed for requests without a length of their own.
//
// A request reserves its prompt and its expected output (output_lengths.h). So more requests run
// together than if each reserved its worst case. (vLLM, SOSP 2023, reserves no output at all.)
//
// A sequence that outgrows its reservation takes free blocks. If there are none, the request that
// arrived last is preempted: its blocks are freed, and it is computed again from its prompt and its
// output so far. After kMaxPreemptions a request reserves its worst case and is not preempted again
// (guarantee G7).
#pragma once

#include "scheduler/admission/admission_policy.h"
#include "scheduler/admission/output_lengths.h"

namespace penstock::scheduler {

class OptimisticAdmission final : public AdmissionPolicy {
 public:
  static constexpr std::uint32_t kMaxPreemptions = 3;

  OptimisticAdmission(const Config& config, const GroupCapacity& capacity,
                      const OutputLengths& lengths)
      : AdmissionPolicy(config, capacity),
        promises_lengths_(config.admission == AdmissionMode::kMixed),
        lengths_(lengths) {}

  std::uint64_t TokensToReserve(const Work& work) const override;
  bool MayBePreempted(const Work& work) const override {
    if (promises_lengths_ && work.request.length_given) return false;
    return work.preemptions < kMaxPreemptions;
  }

 private:
  const bool promises_lengths_;
  const OutputLengths& lengths_;
};

}  // namespace penstock::scheduler
