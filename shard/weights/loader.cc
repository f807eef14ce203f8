#include "shard/weights/loader.h"

#include <algorithm>

#include "common/round_up.h"
#include "common/status.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard {
namespace {

constexpr std::uint64_t kChunkBytes = 4 << 20;

}  // namespace

absl::StatusOr<LoadedWeights> LoadWeights(const Checkpoint& checkpoint, const WeightPlan& plan,
                                          DType dtype, const LoadProgress& progress) {
  LoadedWeights weights;
  auto region = MemoryRegion::Allocate(plan.Bytes(dtype));
  if (!region.ok()) return WithContext(region.status(), "weights");
  weights.memory = std::move(*region);
  const CheckpointSource source(checkpoint, plan, dtype);
  const std::uint64_t total = plan.Elements() * DTypeBytes(dtype);
  std::uint64_t done = 0;
  const auto report = [&] {
    const bool go_on = !progress || progress("weights", done, total);
    return go_on ? absl::OkStatus() : absl::CancelledError("loading was interrupted");
  };
  PENSTOCK_RETURN_IF_ERROR(report());
  std::byte* next = weights.memory.data();
  for (const WeightTarget& target : plan.targets) {
    const auto index = static_cast<std::int32_t>(weights.views.size());
    const auto rows = static_cast<std::int64_t>(target.rows);
    weights.views.push_back(
        target.vector
            ? TensorView::Vector(next, rows, dtype)
            : TensorView::Matrix(next, rows, static_cast<std::int64_t>(target.columns), dtype));
    const std::uint64_t row_bytes = target.columns * DTypeBytes(dtype);
    const std::uint64_t step = std::max<std::uint64_t>(1, kChunkBytes / row_bytes);
    for (std::uint64_t row = 0; row < target.rows; row += step) {
      const std::uint64_t count = std::min(step, target.rows - row);
      PENSTOCK_RETURN_IF_ERROR(source.ReadRows(index, row, count, next + row * row_bytes));
      done += count * row_bytes;
      PENSTOCK_RETURN_IF_ERROR(report());
    }
    next += RoundUp(weights.views.back().Bytes(), kCacheLineBytes);
  }
  return weights;
}

}  // namespace penstock::shard
