// Which backend a shard on a CUDA device runs (--backend).
#pragma once

#include <cstdint>
#include <string>

#include "shard/backend/cuda/gpu.h"
#include "shard/executor/model_rank.h"

namespace penstock::shard::cuda {

struct CudaChoiceOptions {
  std::string wanted;  // auto | cuda | reference
  std::uint32_t block_size = 16;
  bool padded = false;       // KV layout
  bool contrastive = false;  // --contrastive-search
  void* stream = nullptr;    // of the device: cudaStream_t
};

// `auto` is cuda if it has all that the model and the options ask for, else reference after a
// warning that says what is missing. `cuda` refuses instead. `gpu` outlives what the factory makes.
BackendFactory CudaChoice(CudaChoiceOptions options, Gpu& gpu);

}  // namespace penstock::shard::cuda
