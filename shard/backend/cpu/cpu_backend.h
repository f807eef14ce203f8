// The backend for CPUs: own kernels for AVX2, AVX-512 and AVX-512 with bfloat16 products, own
// threads, nothing of libtorch. Layout of the folder, from the outside in: cpu_backend (the Backend
// interface) -> step_runner (stages on threads) -> stages (the Program, fused), attention_plan (who
// attends to what) -> kernels.h (the routines of one instruction set) -> kernels/ (their
// definitions); weight_store and packed_matrix, kv_cache, step_buffers hold the memory.
//
// Quantised to int8, every matrix of a linear operation takes a byte per weight, the output
// projection (and with it an embedding that is tied to it) among them; its inputs are quantised row
// by row for the product (kernels.h). Norms, biases, attention, K/V and embeddings of their own
// stay as they are.
//
// K/V may have another type than the model (--kv-cache-dtype). Those of 8 bits are quantised when
// they are written, each position of each head with a scale of its own, and widened to float32
// where they are read; they are multiplied with float32 queries and probabilities.
//
// Precision: float32 models compute in float32 throughout. bfloat16 models keep weights and K/V in
// bfloat16 and everything that is added up (the residual stream, sums, softmax, norms) in float32;
// what products read is rounded to bfloat16 where the processor multiplies bfloat16 pairs, to
// integers of 14 bits where they are of integers (then weights are integers of 16 bits), and not at
// all where weights are widened (decisions 0010, 0035). Where pairs are multiplied, weights are
// kept in 12 bits each without loss (decision 0038).
//
// Determinism: for one instruction set, type and world size the logits of a row depend on the
// tokens before it and on nothing else: not on batch mates, chunks, cached prefixes or threads
// (kernels.h says how).
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

// How bfloat16 weights are multiplied (--cpu-products).
enum class CpuProducts : std::uint8_t {
  kAuto,   // kInt16 where its kernels are there and faster
  kFloat,  // as they are: widened to float32, or in pairs where the processor multiplies those
  kInt16,  // as integers of 16 bits, and what they are multiplied with as integers of 14
};

// How bfloat16 weights that are multiplied as they are lie in memory (--cpu-weights). The same
// bits.
enum class CpuWeights : std::uint8_t {
  kAuto,   // kCoded where its kernels are there
  kPlain,  // 16 bits each
  kCoded,  // 12 bits each, without loss (coded_block.h)
};

// What the backend computes with.
struct CpuTypes {
  DType dtype = DType::kFloat32;
  Quantization quantization = Quantization::kNone;
  KvType kv_type = KvType::kAuto;
  CpuProducts products = CpuProducts::kAuto;
  CpuWeights weights = CpuWeights::kAuto;
};

struct CpuOptions {
  Program program;
  LoadedWeights weights;  // of the same BuildProgram; freed once packed
  DType dtype = DType::kFloat32;
  std::uint32_t block_size = 16;
  std::uint32_t threads = 1;  // 1 … 1024
  Quantization quantization = Quantization::kNone;
  KvType kv_type = KvType::kAuto;
  CpuProducts products = CpuProducts::kAuto;
  CpuWeights weights_as = CpuWeights::kAuto;
  // Instead of the processor's own, for the same instruction set; outlive the backend.
  const cpu::Kernels* kernels = nullptr;
  // In the place of `weights`, then empty: packed as they are read. Used by MakeCpuBackend only.
  const WeightSource* source = nullptr;
  LoadProgress progress = nullptr;
  // Where packed weights are kept for the next start (packed_cache.h); empty: nowhere.
  std::string weights_cache = {};
  std::uint64_t weights_cache_bytes = 0;  // of all files there, at most
  // Free memory for this rank, in bytes. Of a serving cache that takes less than three quarters of
  // it, only the first blocks are pre-faulted. Null: every cache is pre-faulted as a whole.
  std::function<std::uint64_t()> free_memory = nullptr;
  cpu::Placement placement = {};  // of the threads
};

// Unimplemented or FailedPrecondition, one line, for what this backend or this processor cannot
// run; InvalidArgument for a wrong PENSTOCK_ISA, and for products in integers that this model or
// processor cannot have.
absl::Status CheckCpuBackend(const Program& program, const CpuTypes& types,
                             std::uint32_t block_size);

// What Name() will be of a backend that the check lets through, if its weights can be kept so:
// cpu/avx512-bf16/int8, behind it /kv-int8 where K/V have another type than the model;
// cpu/avx512-int16 multiplies in integers, cpu/avx512-bf16-coded keeps weights in 12 bits.
absl::StatusOr<std::string> CpuBackendName(const CpuTypes& types);

// Whether it will try to keep weights in 12 bits: some are in matrices of a size for that. Whether
// they can be is known when they have been read.
absl::StatusOr<bool> CpuTriesToCode(const Program& program, const WeightSource& source,
                                    const CpuTypes& types);

// Memory that the weights of `source` will take in a backend that the check lets through, packed
// and quantised, with their scales and padding. Reads nothing.
absl::StatusOr<std::uint64_t> CpuWeightBytes(const Program& program, const WeightSource& source,
                                             const CpuTypes& types);

absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(CpuOptions options);

}  // namespace penstock::shard
