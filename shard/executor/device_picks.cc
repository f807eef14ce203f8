// ModelExecutor's steps whose tokens the backend picks itself.
#include <algorithm>

#include "common/status.h"
#include "common/time.h"
#include "shard/executor/model_executor.h"

namespace penstock::shard {

// True if every row of logits of this step is for one token that the backend can pick; requests_
// then has one for each.
bool ModelExecutor::CollectPickRequests() {
  requests_.clear();
  if (options_.picker == nullptr) return false;
  for (std::size_t i = 0; i < batch_.work().size(); ++i) {
    const StepWork& work = batch_.work()[i];
    if (work.logit_count == 0) continue;
    if (work.logit_count != 1 || !PicksAlone(work)) return false;
    requests_.push_back(RequestOfRow(i));
  }
  return options_.picker->CanPick(requests_);
}

absl::Status ModelExecutor::PickOnDevice(StepResult& result) {
  const Time begin = SteadyNow();
  const std::span<const SampleRequest> requests = requests_;
  picked_.assign(requests.size(), {});
  for (std::size_t first = 0; first < requests.size(); first += options_.max_logit_rows) {
    const std::size_t count =
        std::min<std::size_t>(options_.max_logit_rows, requests.size() - first);
    PENSTOCK_RETURN_IF_ERROR(options_.picker->Pick(static_cast<std::uint32_t>(first),
                                                   requests.subspan(first, count),
                                                   std::span(picked_).subspan(first, count)));
  }
  logits_time_ += SteadyNow() - begin;
  std::size_t next = 0;
  for (std::size_t i = 0; i < batch_.work().size(); ++i) {
    if (batch_.work()[i].logit_count == 0) continue;
    picks_[batch_.work()[i].first_pick] = picked_[next].token;
    PENSTOCK_RETURN_IF_ERROR(TakePicked(picked_[next++], result.sequences[i]));
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
