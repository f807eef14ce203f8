// The reference backend: plain ATen operations, any device that ATen serves. It is the oracle for
// backends with own kernels, so it is written to be read; it is not the fastest.
//
// Precision: weights, activations and cache in the model's dtype; norms, RoPE, attention and
// all-reduce sums in float32, each rounded once.
//
// Batch independence on the CPU: rows are padded to a multiple of kRowTile and float32 matrix
// products are made in tiles of exactly kRowTile rows, since the libraries behind ATen change the
// last bits with the number of rows. Attention runs per sequence. So in float32 a row does not
// depend on its batch mates. Splitting a prompt into other chunks may change last bits.
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
  LoadedWeights weights;  // of the same BuildProgram; copied to `device` and freed unless it is CPU
  DType dtype = DType::kFloat32;
  Device device;
  // cudaStream_t on which a CUDA device works, also for the communicator; null: libtorch's own.
  void* stream = nullptr;
  std::uint32_t block_size = 16;
  std::uint32_t cpu_threads = 1;  // at most; small models use fewer
};

absl::StatusOr<std::unique_ptr<Backend>> MakeReferenceBackend(ReferenceOptions options);

}  // namespace penstock::shard
