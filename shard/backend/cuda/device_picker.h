// Hands sampling parameters to the device and has it pick tokens (sampling.h): what a step's rows
// need is packed into one upload; only the picks come back. They stay on the device, too, where the
// next step finds them. On the host two steps take turns.
//
// Stage, Enqueue and Fetch of one step in this order; Take once the device has come to its end.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <span>

#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/sampling.h"
#include "shard/backend/device_sampler.h"
#include "shard/sampling/sampler.h"

namespace penstock::shard::cuda {

class DevicePicker {
 public:
  DevicePicker() = default;
  // For `rows` rows of `width` logits at a time. `gpu` outlives the object.
  static absl::StatusOr<DevicePicker> Create(Gpu& gpu, std::uint32_t rows, std::uint32_t width);

  // The rows of one step, all of them; `newest` below counts as known.
  bool CanPick(std::span<const SampleRequest> requests) const;

  // Copies what the requests ask for to the device, and rows that ask for nothing up to
  // `padded_rows`. newest[i]: the pick of the step before that request i does not know; empty:
  // none.
  absl::Status Stage(std::span<const SampleRequest> requests, std::span<const std::int32_t> newest,
                     std::uint32_t padded_rows);

  // logits: [rows, width] on the device, changed where a request asks for it. May be recorded.
  absl::Status Enqueue(float* logits, std::uint32_t rows);

  // The first `rows` picks to the host, for Take.
  absl::Status Fetch(std::uint32_t rows);
  // Of the step before the last Fetch if `earlier`.
  void Take(std::span<DeviceToken> out, bool earlier = false) const;

  // On the device, at the same place always.
  const std::int32_t* Picks() const {
    return reinterpret_cast<const std::int32_t*>(device_.At(Layout().picks));
  }

  std::uint64_t MemoryBytes() const { return device_.bytes() + scratch_.bytes(); }

 private:
  // Where each list begins.
  struct Offsets {
    std::size_t seen, biases, masked, picks, logprobs, end;
  };
  Offsets Layout() const;
  // One row's parameters and entries into the staging memory.
  void Add(const SampleRequest& request, SampleRow& row, SampleRow& used);
  absl::Status Upload(std::size_t rows, const SampleRow& used);
  template <class T>
  T* Host(std::size_t offset) const {
    return reinterpret_cast<T*>(staging_[turn_].At(offset));
  }

  Gpu* gpu_ = nullptr;
  std::uint32_t rows_ = 0;
  std::uint32_t width_ = 0;
  std::array<GpuMemory, 2> staging_;  // pinned
  std::size_t turn_ = 0;
  GpuMemory device_;   // the same layout
  GpuMemory scratch_;  // of SampleRows
};

}  // namespace penstock::shard::cuda
