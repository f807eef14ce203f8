// The backend for CPUs: kernels for AVX2, AVX-512 and AVX-512 with bfloat16 products, and threads
// of its own; no libtorch. The folder, from the outside in:
//   cpu_backend  the Backend interface
//   step_runner  runs the stages of a step on the threads
//   stages       the Program with its operations fused; attention_plan divides attention
//   weights/     the packed weights and their cache; formats/ how they are stored and multiplied
//   kv_cache, step_buffers   the other memory
//   kernels.h    the routines of one instruction set; kernels/ defines them
//
// K/V may have another type than the model (--kv-cache-dtype). int8 K/V have a scale for each
// position of each head; writes quantise them, and reads widen them to float32.
//
// Precision: float32 models compute in float32. bfloat16 models store weights and K/V in bfloat16
// and compute all sums (residual stream, softmax, norms) in float32. The input of a GEMM is rounded
// to bfloat16 where the processor multiplies bfloat16 pairs, quantised if the weight format wants
// it, and not rounded otherwise (decisions 0010, 0035).
//
// Determinism: for one instruction set, type and world size the logits of a row depend only on the
// tokens before it, not on other rows of the batch, chunks, cached prefixes or threads (kernels.h).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/threads/numa.h"
#include "shard/cache/paged/kv_type.h"
#include "shard/model/program.h"
#include "shard/weights/loader.h"
#include "shard/weights/quantization.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard {

namespace cpu {
struct Kernels;
}

// What the backend computes with.
struct CpuTypes {
  DType dtype = DType::kFloat32;
  Quantization quantization = Quantization::kNone;
  KvType kv_type = KvType::kAuto;
  std::string weight_format = "auto";  // or the name of a format (formats/weight_format.h)
};

struct CpuOptions {
  Program program;
  LoadedWeights weights;  // of the same BuildProgram; freed once packed
  DType dtype = DType::kFloat32;
  std::uint32_t block_size = 16;
  std::uint32_t threads = 1;  // 1 … 1024
  Quantization quantization = Quantization::kNone;
  KvType kv_type = KvType::kAuto;
  std::string weight_format = "auto";
  // Replaces the processor's kernels, for the same instruction set; outlives the backend.
  const cpu::Kernels* kernels = nullptr;
  // Replaces `weights`: rows are packed as they are read. Used by MakeCpuBackend only.
  const WeightSource* source = nullptr;
  LoadProgress progress = nullptr;
  // The folder that keeps packed weights for the next start (packed_cache.h); empty: none.
  std::string weights_cache = {};
  std::uint64_t weights_cache_bytes = 0;  // of all files there, at most
  // Free memory for this rank, in bytes. Of a serving cache that takes less than three quarters of
  // it, only the first blocks are pre-faulted. Null: every cache is pre-faulted as a whole.
  std::function<std::uint64_t()> free_memory = nullptr;
  cpu::ThreadPlacement placement = {};  // of the threads
};

// Unimplemented or FailedPrecondition, one line, for what this backend or this processor cannot
// run; InvalidArgument for a wrong PENSTOCK_ISA, and for a weight format that this model or
// processor cannot have; out of range for the block size.
absl::Status CheckCpuBackend(const Program& program, const CpuTypes& types,
                             std::uint32_t block_size);

// The Name() of a backend that passes the check, if its weights fit their format: the instruction
// set, then the weight format unless it is plain, then the type of K/V if it is not the model's:
// "cpu/avx512-bf16/int8/kv-int8", "cpu/avx512-int16".
absl::StatusOr<std::string> CpuBackendName(const CpuTypes& types);

// The same before the weights have been read: "cpu/avx512-bf16-compressed, or cpu/avx512-bf16 if
// its weights do not fit that format".
absl::StatusOr<std::string> DescribeCpuBackend(const Program& program, const WeightSource& source,
                                               const CpuTypes& types);

// Memory of the packed weights of `source` in a backend that passes the check, with scales and
// padding. Reads no weights.
absl::StatusOr<std::uint64_t> CpuWeightBytes(const Program& program, const WeightSource& source,
                                             const CpuTypes& types);

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(CpuOptions options);

}  // namespace penstock::shard
