// Which backend a shard on a CPU runs (--backend).
#pragma once

#include <cstdint>
#include <string>

#include "shard/backend/cpu/cpu_backend.h"
#include "shard/executor/model_rank.h"

namespace penstock::shard {

struct BackendChoiceOptions {
  std::string wanted;  // auto | cpu | reference
  std::uint32_t block_size = 16;
  std::uint32_t local_ranks = 1;  // that share memory and cores
  std::uint32_t local_rank = 0;   // among them
  std::uint32_t cpu_threads = 1;  // at most; a small model uses fewer
  std::string weights_cache;      // folder of packed weights; empty: none
  std::uint64_t weights_cache_bytes = 0;
  std::string weight_format = "auto";  // of backend cpu
};

// `auto` is cpu if it supports the model and the options. Otherwise it is reference, if the program
// has it, after a warning that names what cpu does not support; `cpu` refuses instead. Only cpu has
// int8 weights.
BackendFactory BackendChoice(BackendChoiceOptions options);

// Memory of the weights of this rank in the chosen backend. Errors as those of the factory.
absl::StatusOr<std::uint64_t> WeightBytesOf(const BackendChoiceOptions& options,
                                            const Model& model);

// The choice as text, without reading weights: "cpu/avx512-bf16", or "reference: " and what cpu
// does not support. Errors as those of the factory.
absl::StatusOr<std::string> DescribeChoice(const BackendChoiceOptions& options, const Model& model);

}  // namespace penstock::shard
