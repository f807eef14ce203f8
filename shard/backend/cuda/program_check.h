// Which programs the CUDA backend can run.
#pragma once

#include <absl/status/status.h>

#include "common/dtype.h"
#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/paged_attention.h"
#include "shard/cache/paged/kv_type.h"
#include "shard/model/program.h"
#include "shard/weights/quantization.h"

namespace penstock::shard::cuda {

// The heads of the first attention layer. CheckCudaBackend wants all to be equal.
HeadShape HeadsOf(const Program& program);

// Returns Unimplemented with the operation, dtype or size that the backend does not have.
absl::Status CheckCudaBackend(const Program& program, DType dtype);

// The same for CudaOptions::batch_invariant.
absl::Status CheckBatchInvariant(const Program& program, DType dtype);

// The same for CudaOptions::quantization.
absl::Status CheckQuantization(Quantization quantization, DType dtype);

// The same for CudaOptions::kv_type.
absl::Status CheckKvType(KvType type, AttentionKind kind);

}  // namespace penstock::shard::cuda
