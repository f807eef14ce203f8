// Which backend a shard on a CUDA device runs (--backend).
#pragma once

#include <cstdint>
#include <string>

#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/parts.h"
#include "shard/executor/model_rank.h"

namespace penstock::shard::cuda {

struct CudaChoiceOptions {
  std::string wanted;  // auto | cuda | reference
  std::uint32_t block_size = 16;
  bool padded = false;       // padded KV layout
  bool contrastive = false;  // --contrastive-search
  bool batch_invariant = false;
  void* stream = nullptr;  // of the device: cudaStream_t
  CudaParts parts;
};

// `auto` is cuda if it supports the model and the options. Otherwise it is reference, after a
// warning that names what is missing; `cuda` refuses instead. `gpu` outlives the backend.
BackendFactory CudaChoice(CudaChoiceOptions options, Gpu& gpu);

// The bytes of the weights that the backend keeps on the device.
absl::StatusOr<std::uint64_t> CudaWeightBytes(const Model& model);

}  // namespace penstock::shard::cuda
