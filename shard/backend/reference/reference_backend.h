// The reference backend: plain ATen operations on any device that ATen has. Backends with own
// kernels are compared with it. It is written to be read, not to be fast.
//
// Precision: weights, activations and cache have the model's dtype. Norms, RoPE, attention and sums
// over the ranks are computed in float32 and rounded once.
//
// Batch independence on the CPU: in float32 the result of a row does not depend on other rows of
// the batch. The libraries that ATen uses change the last bits with the number of rows. So rows are
// padded to a multiple of kRowTile, float32 GEMMs run in tiles of exactly kRowTile rows, and
// attention runs per sequence. Other chunks of a prompt may change last bits.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "shard/backend/backend.h"
#include "shard/model/program.h"
#include "shard/tensor_view.h"
#include "shard/weights/loader.h"

namespace penstock::shard {

struct ReferenceOptions {
  Program program;
  LoadedWeights weights;  // of the same BuildProgram; used in place on a CPU, else copied and freed
  DType dtype = DType::kFloat32;
  Device device;
  // The cudaStream_t of a CUDA device, which the communicator uses too; null: libtorch's own.
  void* stream = nullptr;
  std::uint32_t block_size = 16;
  std::uint32_t cpu_threads = 1;  // the most; small models use fewer
};

absl::StatusOr<std::unique_ptr<Backend>> MakeReferenceBackend(ReferenceOptions options);

}  // namespace penstock::shard
