// How much KV cache a rank allocates: blocks, and with the padded layout also padded KV rows.
// Arithmetic only.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "shard/cache/paged/paged_layout.h"
#include "shard/service/rank_engine.h"

namespace penstock::shard {

class CachePlan {
 public:
  CachePlan(const PagedLayout& layout, bool padded) : layout_(layout), padded_(padded) {}

  // Bytes that let all sequences reach their longest length.
  std::uint64_t WantedBytes(const GroupLimits& limits) const;

  // The largest pool in `bytes`. ResourceExhausted if not even one block fits.
  absl::StatusOr<PoolSize> Fit(std::uint64_t bytes, const GroupLimits& limits) const;

  // Tokens of the longest sequence that the pool can hold.
  std::uint32_t LongestSequence(const PoolSize& pool, const GroupLimits& limits) const;

  std::uint64_t Bytes(const PoolSize& pool) const;

  // "100 blocks of 16 tokens, 1.2 GiB".
  std::string Describe(const PoolSize& pool) const;

 private:
  const PagedLayout layout_;
  const bool padded_;
};

}  // namespace penstock::shard
