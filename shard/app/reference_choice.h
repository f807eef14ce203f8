// Backend reference, which only programs with libtorch have. A program links one definition:
// with_reference.cc, or no_reference.cc, which refuses.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "shard/backend/backend.h"
#include "shard/executor/model_rank.h"

namespace penstock::shard {

struct ReferenceChoice {
  Device device;
  void* stream = nullptr;  // the cudaStream_t of a CUDA device
  std::uint32_t block_size = 16;
  std::uint32_t cpu_threads = 1;
};

// Unimplemented, with the remedy, if this program does not have it.
absl::Status CheckReference();

absl::StatusOr<std::unique_ptr<Backend>> MakeReference(const ReferenceChoice& choice,
                                                       const Model& model,
                                                       const LoadProgress& progress);

}  // namespace penstock::shard
