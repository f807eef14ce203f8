// Computes the attention of one layer in a step, divided among the threads by AttentionPlan.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/attention/attention_plan.h"
#include "shard/backend/cpu/attention/kv_prefetch.h"
#include "shard/backend/cpu/cache/kv_cache.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

// Everything outlives the stage.
struct AttentionParts {
  const Kernels& kernels;
  const CellKernels& cell_kernels;
  const KvCache& cache;
  StepBuffers& buffers;
  WorkerPool& pool;
  const AttentionPlan& plan;
  const std::uint32_t* tables;      // blocks of all segments
  const std::size_t* table_starts;  // by segment
  const CachePlace* cells;          // of each row: where its K and V are
  const BufferView& queries;        // float32, heads one after the other
  const BufferView& out;            // activations
  const AttentionOp& op;            // its cache, heads, scale and softcap
  const float* sinks;               // of each query head of the rank, or null
};

class AttentionStage {
 public:
  explicit AttentionStage(const AttentionParts& parts) : parts_(parts) {}

  // Computes one thread's share. It contains a barrier if items are divided, and none at the end.
  void Run(std::size_t thread);

 private:
  AttentionTile TileOf(std::size_t item) const;
  // Partitions [first, end) of an item, counted from its first.
  void AttendItem(std::size_t item, std::size_t first, std::size_t end, KvPrefetch& prefetch,
                  ThreadScratch& scratch);
  void MergeItem(const SplitItem& split, ThreadScratch& scratch);
  void FinishItem(std::size_t item, const AttentionTile& tile, const AttentionState& state);
  // Adds the exponentials of the sinks to the sums.
  void AddSinks(const float* sinks, const AttentionTile& tile, const AttentionState& state) const;

  const AttentionParts parts_;
};

}  // namespace penstock::shard::cpu
