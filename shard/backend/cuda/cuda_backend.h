// The CUDA backend: own kernels (kernels.h, paged_attention.h), library matrix products behind
// gpu.h, and decode steps as recorded graphs (graph_buckets.h).
//
// Precision: weights, activations and cache in the model's dtype (float32 or bfloat16); norms,
// angles, softmax and sums over the ranks in float32, each rounded once, as in `reference`.
//
// In steady state nothing is allocated. Decode graphs go on to the head and the picks, whose tokens
// stay on the device for the next step: steps that run ahead (device_sampler.h) keep the device
// busy while the host waits for nothing. Else the host waits once per step, for logits or picks; so
// it does with several ranks, whose graphs end before the head. Graphs are recorded when the cache
// is allocated, unless the communicator's calls cannot be. The library picks a matrix product by
// the number of rows, so the last bits of a result depend on how many rows share a step.
//
// Not offered: contrastive search (Prepare refuses it).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "shard/backend/backend.h"
#include "shard/backend/cuda/gpu.h"
#include "shard/model/program.h"
#include "shard/weights/loader.h"

namespace penstock::shard::cuda {

struct CudaOptions {
  Program program;
  LoadedWeights weights;  // copied to the device, then freed
  DType dtype = DType::kBFloat16;
  std::uint32_t block_size = 16;
  bool graphs = true;  // record decode steps
  std::uint32_t max_graph_rows = 256;
};

// Says which operation, dtype or size the backend lacks.
absl::Status CheckCudaBackend(const Program& program, DType dtype);

// `gpu` outlives the backend.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(CudaOptions options, Gpu& gpu);

}  // namespace penstock::shard::cuda
