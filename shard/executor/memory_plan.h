// What a rank will take of the machine's memory, known before a weight is read, and how much of it
// becomes K/V cache. Pure arithmetic and text; common bytes are uint64.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "shard/model/program.h"

namespace penstock::shard {

// --kv-cache-memory: one of the two is above zero, or neither ("auto").
struct KvMemory {
  std::uint64_t bytes = 0;
  double share = 0.0;  // of what is free beside weights and scratch
};

struct MemoryNeeds {
  std::uint32_t rank = 0;
  std::uint32_t local_ranks = 1;  // ranks that divide the memory, for `auto`
  double auto_share = 0.5;        // of the free memory, at most, for `auto`
  std::uint64_t weight_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  std::uint32_t scratch_step_tokens = 0;  // the step size that scratch_bytes is for
  KvMemory kv;
  std::uint64_t kv_bytes_per_token = 0;
  std::uint64_t hidden_bytes_per_token = 0;  // of these, the hidden-state plane
};

// Buffers of a Program for steps of `step_tokens` rows, `logit_rows` of which give logits at a
// time.
std::uint64_t ScratchBytes(const Program& program, std::uint32_t step_tokens,
                           std::uint32_t logit_rows, std::uint64_t element_bytes);

// Cache bytes out of `free_bytes` that weights and scratch leave. A given number of bytes is taken
// as it is; a share is of the free bytes; `auto` is `wanted_bytes`, but at most `auto_share` of the
// free bytes divided by the local ranks. ResourceExhausted names the numbers when the cache does
// not fit.
absl::StatusOr<std::uint64_t> ChooseKvBytes(const MemoryNeeds& needs, std::uint64_t free_bytes,
                                            std::uint64_t wanted_bytes);

// One line: "memory plan of rank 0: weights 1.0 MiB + … = 2.0 GiB of 7.1 GiB free".
// ResourceExhausted with the same line when it does not fit.
absl::StatusOr<std::string> DescribeMemoryPlan(const MemoryNeeds& needs, std::uint64_t free_bytes);

// "1.2 GiB", for people.
std::string HumanBytes(std::uint64_t bytes);

}  // namespace penstock::shard
