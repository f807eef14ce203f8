// The CUDA backend: own kernels (kernels.h, paged_attention.h), GEMMs of a library (gpu.h), and
// decode steps as recorded graphs (graph_buckets.h).
//
// Precision: weights, activations and cache have the model's dtype, float32 or bfloat16. Norms,
// angles, softmax and sums over the ranks are computed in float32 and rounded once, as in
// `reference`.
//
// Steps allocate nothing. Graphs are recorded when the cache is allocated, unless the
// communicator's calls cannot be recorded. With one rank, graphs of decode steps include the head
// and the sampling. Their tokens stay on the device for the next step, so with run-ahead
// (device_sampler.h) the device does not wait for the host. In all other cases the host waits once
// per step for logits or tokens. The library chooses a GEMM by the number of rows, so the last bits
// of a result depend on it.
//
// Weights may be quantized (device_weights.h). Activations are not: up to 192 rows are multiplied
// by kernels that read a byte per weight. For more rows a matrix is expanded to bfloat16 first, and
// the library multiplies.
//
// Not offered: contrastive search (Prepare refuses it).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "shard/backend/backend.h"
#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/parts.h"
#include "shard/cache/paged/kv_type.h"
#include "shard/model/program.h"
#include "shard/weights/loader.h"
#include "shard/weights/quantization.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard::cuda {

struct CudaOptions {
  Program program;
  LoadedWeights weights;  // copied to the device, then freed
  // Replaces `weights`: rows are copied to the device as they are read. Used by MakeCudaBackend
  // only.
  const WeightSource* source = nullptr;
  LoadProgress progress = nullptr;
  DType dtype = DType::kBFloat16;
  std::uint32_t block_size = 16;
  // A sequence's bits do not depend on the other sequences of a step, nor on how its prompt is cut
  // into steps: products add in one order for any number of rows, and attention in partitions that
  // begin at position 0. Only for bfloat16 and widths that SkinnyLinear takes.
  bool batch_invariant = false;
  Quantization quantization = Quantization::kNone;  // of plain weights in bfloat16
  KvType kv_type = KvType::kAuto;                   // or kFp8; see CheckKvType
  CudaParts parts;
  std::uint32_t max_graph_rows = 512;
};

// Returns the error of CheckCudaBackend (program_check.h). `gpu` outlives the backend.
absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(CudaOptions options, Gpu& gpu);

}  // namespace penstock::shard::cuda
