// How much memory a rank will use, computed before any weight is read, and how much of it becomes
// KV cache. Arithmetic and text only. Sizes are in bytes.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "common/human_bytes.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/model/program.h"
#include "shard/service/rank_engine.h"

namespace penstock::shard {

// --kv-cache-memory. At most one of the two is above zero; neither means "auto".
struct KvMemory {
  std::uint64_t bytes = 0;
  double share = 0.0;  // of the memory that weights and scratch leave free
};

struct MemoryNeeds {
  std::uint32_t rank = 0;
  std::uint32_t local_ranks = 1;  // ranks that share the memory, for "auto"
  double auto_share = 0.5;        // most of the free memory, for "auto"
  std::string limit = {};         // what bounds the free memory; empty: not named
  std::uint64_t weight_bytes = 0;
  std::uint64_t adapter_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  std::uint32_t scratch_step_tokens = 0;  // the step size of scratch_bytes
  KvMemory kv;
  std::uint64_t kv_bytes_per_token = 0;      // of KV group 0
  std::uint64_t hidden_bytes_per_token = 0;  // part of it: hidden states
  std::uint64_t latent_bytes_per_token = 0;  // part of it: latents and RoPE keys
  std::uint32_t window = 0;                  // of KV group 1; 0: there is none
  std::uint64_t window_bytes_per_token = 0;
  std::uint64_t window_bytes = 0;  // of group 1 that one sequence holds, at most
  std::uint64_t state_bytes = 0;   // of the recurrent layers of one sequence
};

// Bytes of the buffers of a Program for steps of `step_tokens` rows. At most `logit_rows` of them
// give logits at a time.
std::uint64_t ScratchBytes(const Program& program, std::uint32_t step_tokens,
                           std::uint32_t logit_rows, std::uint64_t element_bytes);

// Bytes of the cache, if weights and scratch leave `free_bytes`. "auto" is `wanted_bytes`, but at
// most `auto_share` of the free bytes divided by the local ranks. ResourceExhausted if a given
// number of bytes does not fit.
absl::StatusOr<std::uint64_t> ChooseKvBytes(const MemoryNeeds& needs, std::uint64_t free_bytes,
                                            std::uint64_t wanted_bytes);

// One line: "memory plan of rank 0: weights 1.0 MiB, …; 2.0 GiB of 7.1 GiB free (limit: ulimit
// -v)". ResourceExhausted with the same line if it does not fit.
absl::StatusOr<std::string> DescribeMemoryPlan(const MemoryNeeds& needs, std::uint64_t free_bytes);

// Returns ResourceExhausted if the size that the operator gave is less than one block.
absl::Status CheckOneBlockFits(const KvMemory& kv, const PagedLayout& layout);

// Snapshots may take 1 / kSnapshotShare of the cache's memory that the states of sequences leave.
inline constexpr std::uint64_t kSnapshotShare = 4;

// The states of recurrent layers that a rank keeps: one for each sequence and each draft of a step,
// and snapshots.
struct StatePlan {
  std::uint64_t bytes = 0;  // of one state; 0: the model has no recurrent layers
  std::uint32_t sequences = 0;
  std::uint32_t drafts = 0;
  std::uint32_t max_snapshots = 0;
  // The bytes of the states of sequences and drafts.
  std::uint64_t Bytes() const { return bytes * (std::uint64_t{sequences} + drafts); }
};

// The most blocks of KV group 1 that one sequence holds at once.
std::uint32_t MostWindowBlocks(const PagedLayout& layout, std::uint32_t window,
                               const v1::Limits& limits);

// How much cache a rank in the paged KV layout allocates: blocks and states.
//
// KV group 1 gets the blocks that the windows of all sequences need, but no more than group 0 gets.
// If the driver has no block table for it, it gets as many.
class CachePlan {
 public:
  // `window`: that of KV group 1 if the driver has a block table for it; else 0.
  explicit CachePlan(const PagedLayout& layout, const StatePlan& states = {},
                     std::uint32_t window = 0)
      : layout_(layout), states_(states), window_(window) {}

  virtual ~CachePlan() = default;

  // Bytes that let all sequences reach their longest length.
  virtual std::uint64_t WantedBytes(const v1::Limits& limits) const;

  // The largest pool in `bytes` beside the states. ResourceExhausted if not even one block fits.
  virtual absl::StatusOr<PoolSize> Fit(std::uint64_t bytes, const v1::Limits& limits) const;

  // Tokens of the longest sequence that the pool can hold.
  virtual std::uint32_t LongestSequence(const PoolSize& pool, const v1::Limits& limits) const;

  virtual std::uint64_t Bytes(const PoolSize& pool) const;

  // "100 blocks of 16 tokens, 1.2 GiB".
  virtual std::string Describe(const PoolSize& pool) const;

 protected:
  // "100 blocks of 16 tokens".
  std::string BlocksText(const PoolSize& pool) const;
  // `beside`: what the rank needs besides blocks, ", and …".
  absl::Status NoBlockFits(std::uint64_t bytes, const std::string& beside = "") const;

  const PagedLayout layout_;

 private:
  // Blocks that all sequences need.
  KvBlocks Wanted(const v1::Limits& limits) const;
  KvBlocks FitBlocks(std::uint64_t bytes, const v1::Limits& limits) const;

  const StatePlan states_;
  const std::uint32_t window_ = 0;
};

}  // namespace penstock::shard
