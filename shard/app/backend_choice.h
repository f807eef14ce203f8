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
  bool padded = false;            // KV layout
  std::uint32_t local_ranks = 1;  // that divide memory and cores
  std::uint32_t local_rank = 0;   // among them
  std::uint32_t cpu_threads = 1;  // at most; small models use fewer
  std::string weights_cache;      // folder of packed weights; empty: none
  std::uint64_t weights_cache_bytes = 0;
  std::string weight_format = "auto";  // of backend cpu
};

// `auto` is cpu if it runs every operation of the model, else reference after a warning
// that says what is missing. `cpu` refuses instead. The padded KV layout is missing in cpu, int8
// weights in reference.
BackendFactory BackendChoice(BackendChoiceOptions options);

// Memory that the weights of this rank will take in the chosen backend. Errors are the factory's.
absl::StatusOr<std::uint64_t> WeightBytesOf(const BackendChoiceOptions& options,
                                            const Model& model);

// The same choice in words, without reading weights: "cpu/avx512-bf16", or "reference: " and what
// is missing in cpu. An error is that of the factory.
absl::StatusOr<std::string> DescribeChoice(const BackendChoiceOptions& options, const Model& model);

}  // namespace penstock::shard
