#include "shard/weights/loader.h"

#include <algorithm>
#include <tuple>

#include "common/status.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kChunkBytes = 4 << 20;

struct Job {
  const CheckpointTensor* tensor;
  const WeightPart* part;
  std::int32_t index;  // of the target
};

std::uint64_t StoredColumns(const WeightPart& part) {
  return part.stored_shape.size() == 2 ? part.stored_shape[1] : 1;
}

// A column slice is strided in the file, so its rows are read whole.
std::uint64_t BytesToRead(const Job& job) {
  return job.part->rows.count * StoredColumns(*job.part) * DTypeBytes(*job.tensor->info->dtype);
}

class Loader {
 public:
  Loader(const WeightSource& source, const std::vector<TensorView>& views,
         const LoadProgress& progress)
      : source_(source), views_(views), progress_(progress) {}

  absl::Status Run(std::vector<Job> jobs) {
    // Files are read in order, which is fast on a disk.
    std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
      return std::tuple(a.tensor->file, a.tensor->info->offset, a.part->rows.first) <
             std::tuple(b.tensor->file, b.tensor->info->offset, b.part->rows.first);
    });
    for (const Job& job : jobs) total_ += BytesToRead(job);
    PENSTOCK_RETURN_IF_ERROR(Report(0));
    for (const Job& job : jobs) PENSTOCK_RETURN_IF_ERROR(Load(job));
    return absl::OkStatus();
  }

 private:
  absl::Status Load(const Job& job) {
    const WeightPart& part = *job.part;
    const std::uint64_t stored_row_bytes =
        StoredColumns(part) * DTypeBytes(*job.tensor->info->dtype);
    const std::uint64_t step =
        std::max<std::uint64_t>(1, kChunkBytes / std::max<std::uint64_t>(1, stored_row_bytes));
    const TensorView& target = views_[static_cast<std::size_t>(job.index)];
    const std::uint64_t row_bytes = part.columns.count * DTypeBytes(target.dtype);
    for (std::uint64_t row = 0; row < part.rows.count; row += step) {
      const std::uint64_t rows = std::min(step, part.rows.count - row);
      char* out = static_cast<char*>(target.data) + (part.target_row + row) * row_bytes;
      PENSTOCK_RETURN_IF_ERROR(source_.ReadRows(job.index, part.target_row + row, rows, out));
      PENSTOCK_RETURN_IF_ERROR(Report(rows * stored_row_bytes));
    }
    return absl::OkStatus();
  }

  absl::Status Report(std::uint64_t bytes) {
    done_ += bytes;
    const bool go_on = !progress_ || progress_("weights", done_, total_);
    return go_on ? absl::OkStatus() : absl::CancelledError("loading was interrupted");
  }

  const WeightSource& source_;
  const std::vector<TensorView>& views_;
  const LoadProgress& progress_;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace

absl::StatusOr<LoadedWeights> LoadWeights(const Checkpoint& checkpoint, const WeightPlan& plan,
                                          DType dtype, const LoadProgress& progress) {
  LoadedWeights weights;
  auto region = MemoryRegion::Allocate(plan.Bytes(dtype));
  if (!region.ok()) return WithContext(region.status(), "weights");
  weights.memory = std::move(*region);
  std::byte* next = weights.memory.data();
  for (const WeightTarget& target : plan.targets) {
    const auto rows = static_cast<std::int64_t>(target.rows);
    weights.views.push_back(
        target.vector
            ? TensorView::Vector(next, rows, dtype)
            : TensorView::Matrix(next, rows, static_cast<std::int64_t>(target.columns), dtype));
    next += (weights.views.back().Bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    for (const WeightPart& part : plan.targets[i].parts) {
      jobs.push_back({checkpoint.Find(part.tensor), &part, static_cast<std::int32_t>(i)});
    }
  }
  const CheckpointSource source(checkpoint, plan, dtype);
  PENSTOCK_RETURN_IF_ERROR(Loader(source, weights.views, progress).Run(std::move(jobs)));
  return weights;
}

}  // namespace penstock::shard
