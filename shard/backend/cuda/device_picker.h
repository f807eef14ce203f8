// Hands sampling parameters to the device and has it pick tokens (sampling.h): what a step's rows
// need is packed into one upload; only the tokens come back.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>

#include "common/ids.h"
#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/sampling.h"
#include "shard/sampling/sampler.h"

namespace penstock::shard::cuda {

class DevicePicker {
 public:
  DevicePicker() = default;
  // For `rows` rows at a time, of sequences of at most `max_length` tokens. `gpu` outlives the
  // object.
  static absl::StatusOr<DevicePicker> Create(Gpu& gpu, std::uint32_t rows,
                                             std::uint32_t max_length);

  bool CanPick(const SampleRequest& request) const;

  // logits: [requests.size(), width] on the device, changed. Waits for the device.
  absl::Status Pick(std::span<const SampleRequest> requests, float* logits, std::uint32_t width,
                    std::span<TokenId> out);

  std::uint64_t MemoryBytes() const { return device_.bytes(); }

 private:
  // Where each list begins; all of them have room for every row.
  struct Offsets {
    std::size_t seen, biases, masked, out, end;
  };
  Offsets Layout() const;
  // One row's parameters and entries into the staging memory.
  void Add(const SampleRequest& request, SampleRow& row, SampleRow& used);
  absl::Status Upload(std::size_t rows, const SampleRow& used);

  Gpu* gpu_ = nullptr;
  std::uint32_t rows_ = 0;
  std::uint32_t max_length_ = 0;
  GpuMemory staging_;  // pinned
  GpuMemory device_;   // the same layout
};

}  // namespace penstock::shard::cuda
