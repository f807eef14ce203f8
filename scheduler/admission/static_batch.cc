#include "scheduler/admission/static_batch.h"

namespace penstock::scheduler {

std::optional<Shortage> StaticBatch::Check(const Work& work, std::uint32_t running) const {
  if (batching_ != Batching::kStatic || running == 0) return std::nullopt;
  const bool fits = grouping_ == StaticGrouping::kWindow || LengthsOf(work) == lengths_;
  if (open_ && fits) return std::nullopt;
  return Shortage{Budget::kBatchSize, running + 1U, running};  // the batch is closed
}

}  // namespace penstock::scheduler
