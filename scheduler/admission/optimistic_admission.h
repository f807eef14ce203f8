// Admission::kOptimistic and, for requests without a length of their own, Admission::kMixed: a
// request reserves its prompt and the output that is expected of it
// (output_lengths.h), so that many more run together than worst cases would fit (vLLM, SOSP 2023,
// without its reserve-nothing start). One that outgrows its reservation draws on free blocks; when
// there are none, the request admitted last is preempted: its blocks go back and it is computed
// anew from prompt and generated tokens. After kMaxPreemptions a request reserves its worst case
// and is not preempted again (guarantee G7).
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
        promises_lengths_(config.admission == Admission::kMixed),
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
