#include "shard/backend/cuda/weight_uploader.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "common/status.h"

namespace penstock::shard::cuda {
namespace {

// With fewer bytes, starting a thread costs more than it gains.
constexpr std::uint64_t kLeastBytesOfReader = std::uint64_t{1} << 20;

}  // namespace

absl::StatusOr<WeightUploader> WeightUploader::Create(Gpu& gpu, const WeightSource& source,
                                                      const LoadProgress& progress,
                                                      std::uint64_t buffer_bytes) {
  WeightUploader uploader(gpu, source, progress);
  std::uint64_t row = 0;
  std::uint64_t largest = 0;
  for (std::int32_t i = 0; i < source.Count(); ++i) {
    row = std::max(row, uploader.RowBytes(i));
    largest = std::max(largest, uploader.BytesOf(i));
    uploader.total_ += uploader.BytesOf(i);
  }
  const std::uint64_t bytes = std::max(row, std::min(largest, buffer_bytes));
  for (GpuMemory& buffer : uploader.buffers_) {
    PENSTOCK_ASSIGN_OR_RETURN(buffer, GpuMemory::Pinned(gpu, bytes));
  }
  PENSTOCK_RETURN_IF_ERROR(uploader.Report());
  return uploader;
}

absl::Status WeightUploader::Report() {
  const bool go_on = !*progress_ || (*progress_)("weights", done_, total_);
  return go_on ? absl::OkStatus() : absl::CancelledError("loading was interrupted");
}

absl::Status WeightUploader::Read(std::int32_t index, std::uint64_t first, std::uint64_t count,
                                  std::byte* to) {
  const std::uint64_t row_bytes = RowBytes(index);
  const std::uint64_t readers =
      std::clamp<std::uint64_t>(count * row_bytes / kLeastBytesOfReader, 1, kReaders);
  const std::uint64_t share = (count + readers - 1) / readers;
  std::vector<absl::Status> read(readers);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 1; i < readers && i * share < count; ++i) {
      threads.emplace_back([&, i] {
        read[i] = source_->ReadRows(index, first + i * share, std::min(share, count - i * share),
                                    to + i * share * row_bytes);
      });
    }
    read[0] = source_->ReadRows(index, first, std::min(share, count), to);
  }
  for (const absl::Status& status : read) PENSTOCK_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status WeightUploader::Upload(std::int32_t index, void* device) {
  const std::uint64_t row_bytes = RowBytes(index);
  const std::uint64_t rows = source_->Rows(index);
  const std::uint64_t most = std::max<std::uint64_t>(1, buffers_[0].bytes() / row_bytes);
  auto* const to = static_cast<std::byte*>(device);
  for (std::uint64_t first = 0; first < rows; first += most) {
    const std::uint64_t count = std::min(most, rows - first);
    const GpuMemory& buffer = buffers_[turn_];
    if (copied_[turn_].has_value()) PENSTOCK_RETURN_IF_ERROR(gpu_->WaitFor(*copied_[turn_]));
    PENSTOCK_RETURN_IF_ERROR(Read(index, first, count, buffer.At(0)));
    PENSTOCK_RETURN_IF_ERROR(
        gpu_->Upload(to + first * row_bytes, buffer.data(), count * row_bytes));
    PENSTOCK_ASSIGN_OR_RETURN(copied_[turn_], gpu_->MarkHere(nullptr));
    turn_ = 1 - turn_;
    done_ += count * row_bytes;
    PENSTOCK_RETURN_IF_ERROR(Report());
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard::cuda
