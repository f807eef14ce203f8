// Samples tokens on the device (sampling.h). The parameters of a step's rows are packed into one
// upload, and only the tokens come back. The tokens also stay on the device, where the next step
// reads them. Two staging buffers on the host serve alternate steps.
//
// A step calls Stage, Enqueue and Fetch in this order, and Take after the device finished it.
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

class SamplingRunner {
 public:
  SamplingRunner() = default;
  // For steps of up to `rows` rows of `width` logits. `gpu` outlives the object.
  static absl::StatusOr<SamplingRunner> Create(Gpu& gpu, std::uint32_t rows, std::uint32_t width);

  // Whether every row of a step with these requests can be sampled here.
  bool CanSample(std::span<const SampleRequest> requests) const;

  // Copies the parameters to the device, with rows that ask for nothing up to `padded_rows`.
  // newest[i] is the index, among the tokens of the step before, of the token that request i does
  // not know yet; empty: none.
  absl::Status Stage(std::span<const SampleRequest> requests, std::span<const std::int32_t> newest,
                     std::uint32_t padded_rows);

  // Enqueues the sampling of logits [rows, width] on the device. Changes logits as the requests
  // ask. May be recorded.
  absl::Status Enqueue(float* logits, std::uint32_t rows);

  // Enqueues the copy of the first `rows` tokens to the host.
  absl::Status Fetch(std::uint32_t rows);
  // Gives the tokens of the last Fetch, or of the one before if `earlier`.
  void Take(std::span<DeviceToken> out, bool earlier = false) const;

  // The tokens on the device, always at the same address.
  const std::int32_t* Tokens() const {
    return reinterpret_cast<const std::int32_t*>(device_.At(Layout().tokens));
  }

  std::uint64_t MemoryBytes() const { return device_.bytes() + scratch_.bytes(); }

 private:
  // Where each list begins.
  struct Offsets {
    std::size_t seen, biases, masked, tokens, logprobs, end;
  };
  Offsets Layout() const;
  // Writes one row's parameters and entries to the staging memory.
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
