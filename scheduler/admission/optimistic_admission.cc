#include "scheduler/admission/optimistic_admission.h"

#include <algorithm>

namespace penstock::scheduler {

std::uint64_t OptimisticAdmission::TokensToReserve(const Work& work) const {
  const Arrival& request = work.request;
  if (!MayBePreempted(work)) return WorstCaseTokens(request);
  const auto generated = static_cast<std::uint32_t>(work.generated.size());
  const std::uint32_t expected = lengths_.Expect(request, generated);
  // The reservation covers the steps in flight from the start.
  const std::uint32_t output =
      std::min(request.max_new_tokens, std::max(expected, generated + TokensPerPipeline(request)));
  return std::uint64_t{request.prompt.size()} + output;
}

}  // namespace penstock::scheduler
