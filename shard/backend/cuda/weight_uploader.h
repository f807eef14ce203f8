// Copies weights from their source to the device, through two pinned buffers that take turns.
//
// Threading: one thread; it starts others that read rows, and joins them before it returns.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <optional>

#include "shard/backend/cuda/gpu.h"
#include "shard/weights/loader.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard::cuda {

class WeightUploader {
 public:
  // All outlive the uploader. `progress` is called after each piece; null: not at all.
  static absl::StatusOr<WeightUploader> Create(Gpu& gpu, const WeightSource& source,
                                               const LoadProgress& progress,
                                               std::uint64_t buffer_bytes = kBufferBytes);

  const WeightSource& source() const { return *source_; }
  std::uint64_t BytesOf(std::int32_t index) const { return source_->Rows(index) * RowBytes(index); }

  // Enqueues the copies of a matrix or vector. Cancelled if `progress` returned false.
  absl::Status Upload(std::int32_t index, void* device);

 private:
  static constexpr std::uint64_t kBufferBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kReaders = 4;

  WeightUploader(Gpu& gpu, const WeightSource& source, const LoadProgress& progress)
      : gpu_(&gpu), source_(&source), progress_(&progress) {}
  std::uint64_t RowBytes(std::int32_t index) const {
    return source_->Columns(index) * DTypeBytes(source_->dtype());
  }
  absl::Status Read(std::int32_t index, std::uint64_t first, std::uint64_t count, std::byte* to);
  absl::Status Report();

  Gpu* gpu_;
  const WeightSource* source_;
  const LoadProgress* progress_;
  std::array<GpuMemory, 2> buffers_;
  std::array<std::optional<Gpu::Mark>, 2> copied_;  // the end of the last copy from the buffer
  std::size_t turn_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace penstock::shard::cuda
