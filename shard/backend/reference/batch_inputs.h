// A ragged batch as index tensors on the backend's device.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/reference/aten.h"
#include "shard/model/program.h"

namespace penstock::shard {

// A segment in one KV group.
struct GroupInputs {
  at::Tensor blocks;  // int64 [blocks of the sequence]
  // For candidates: the slot of each row's K and V, int64 [query_count]. Otherwise undefined.
  at::Tensor own_slots;
  std::int64_t first_own_slot = 0;
  std::int64_t commit_slot = 0;  // of the position that the candidates are for
};

struct SegmentInputs {
  std::int64_t query_start = 0;
  std::int64_t query_count = 0;
  std::int64_t context_length = 0;
  std::array<GroupInputs, kMostKvGroups> groups;
  std::optional<SlotId> row;     // padded layout: in place of blocks
  std::int64_t logit_index = 0;  // of the candidates' logit row among all
  std::int64_t state = 0;        // RaggedSegment::state
  std::int64_t drafts = 0;       // RaggedSegment::drafts
  std::int64_t first_draft = 0;  // index among the drafts of the batch

  bool candidates() const { return groups[0].own_slots.defined(); }
};

// Tensors by row have `padded_rows` entries; those from `rows` on are 0.
struct BatchInputs {
  std::int64_t rows = 0;
  std::int64_t padded_rows = 0;
  at::Tensor token_rows;  // int64: row of this rank's embedding (0 for tokens of other ranks)
  at::Tensor token_mask;  // float [padded_rows, 1]: 0 for tokens of other ranks; undefined: all 1
  at::Tensor positions;   // int64
  // By KV group, int64 [rows]: where their K/V go (KvStore::SlotOf).
  std::array<at::Tensor, kMostKvGroups> kv_slots;
  at::Tensor logit_rows;  // int64
  std::vector<SegmentInputs> segments;
};

struct BatchShape {
  std::int64_t row_multiple = 1;
  std::uint32_t block_size = 16;
  KvBlocks blocks;  // of the cache
};

// The index of a position of a segment's sequence in the caches of a KV group.
using SlotOf = std::function<std::int64_t(const RaggedSegment&, std::uint32_t kv_group,
                                          std::uint32_t position)>;

// The batch must have passed CheckBatch.
BatchInputs MakeBatchInputs(const RaggedBatch& batch, const Program& program,
                            const BatchShape& shape, const SlotOf& slot_of, at::Device device);

}  // namespace penstock::shard
