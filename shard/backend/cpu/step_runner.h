// Runs the stages of a step on the threads of a pool.
//
// Threading: the model thread makes all calls. In a call every thread of the pool runs its share of
// each stage.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/adapters/adapted_rows.h"
#include "shard/backend/cpu/attention/attention_plan.h"
#include "shard/backend/cpu/cache/kv_cache.h"
#include "shard/backend/cpu/delta/delta_stage.h"
#include "shard/backend/cpu/delta/short_conv_stage.h"
#include "shard/backend/cpu/delta/state_store.h"
#include "shard/backend/cpu/experts/expert_stage.h"
#include "shard/backend/cpu/linear_stage.h"
#include "shard/backend/cpu/row_places.h"
#include "shard/backend/cpu/stages.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/model/rope_table.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard::cpu {

// What a runner works with; all outlive it.
struct StepParts {
  const Program& program;
  const Kernels& kernels;
  const CellKernels& cell_kernels;
  const CellKernels& latent_kernels;  // for caches whose V lies in K
  const WeightStore& weights;
  const KvCache& cache;
  StepBuffers& buffers;
  const ExpertBuffers& expert_buffers;
  std::vector<RopeTable>& ropes;  // of program.ropes; by row where they depend on the length
  std::uint32_t block_size;
  WorkerPool& pool;
  Communicator* communicator;  // null with world 1
  const StateStore& states;
};

class StepRunner {
 public:
  explicit StepRunner(const StepParts& parts);

  // The batch has been checked.
  absl::Status Execute(const RaggedBatch& batch);
  // Logits of rows [first, first + count) of those selected: float32, `stride` apart. Without a
  // head these rows themselves.
  void Logits(std::size_t first, std::size_t count, float* out, std::size_t stride,
              std::size_t columns);
  // Contrastive search, on candidate segments of the last batch.
  void Similarities(const CandidateSegment& segment, std::span<float> out);
  void Commit(const CandidateSegment& segment, std::uint32_t row);
  const std::vector<CandidateSegment>& candidates() const { return places_.candidates(); }

 private:
  void PlanAttention(const RaggedBatch& batch);
  // Where the angles of a row begin in its table.
  void CopySelected(std::size_t first, std::size_t count, float* out, std::size_t stride,
                    std::size_t columns) const;
  std::size_t AnglesOf(std::int32_t rope, std::size_t row) const;
  // A stage's share of one thread.
  void RunStage(const Stage& stage, std::size_t thread);
  void Norm(const Stage& stage, std::size_t thread);
  void NormRow(const Stage& stage, std::size_t row, void* out);
  using NormKernel = void (*)(const NormArgs& args);
  NormKernel NormFunction(NormKind kind, bool wide) const;  // wide: to float32
  void SelectNorm(const Stage& stage, std::size_t thread);
  void NormAll(const Stage& stage, std::size_t thread);
  void Heads(const Stage& stage, std::size_t thread);
  void HeadsOf(const Stage& stage, std::size_t row, std::size_t kv_head);
  // `index`: of the head among those of its kind.
  void NormHead(const HeadNormOp& op, const float* weights, const float* biases, std::size_t index,
                float* head) const;
  void WriteKv(const RopeKvWriteOp& op, std::size_t row, std::size_t kv_head);
  void Attention(const Stage& stage, std::size_t thread);
  void WriteLatents(const Stage& stage, std::size_t thread);
  const CellKernels& KernelsOf(std::size_t cache) const {
    const bool latent = parts_.program.caches[cache].values_in_keys;
    return latent ? parts_.latent_kernels : parts_.cell_kernels;
  }
  void RunRows(const Stage& stage, std::size_t thread);
  void AllReduce(const Stage& stage);
  GemmArgs GemmOf(const Stage& stage, std::size_t thread) const;
  RowAdapters AdaptersOf(const Stage& stage) const {
    return adapted_.Change(stage.weight) ? adapted_.rows() : RowAdapters();
  }

  bool IsPrivate(const Stage& stage) const { return stage.private_rows && rows_ <= kPrivateRows; }
  std::size_t threads() const { return parts_.pool.threads(); }

  const StepParts parts_;
  const Stages stages_;
  LinearStage linear_;
  std::map<const ExpertsOp*, ExpertStage> experts_;
  std::map<const DeltaNetOp*, DeltaStage> deltas_;
  std::map<const ShortConvOp*, ShortConvStage> short_convs_;

  // For the present step; the caller's thread writes them before the region.
  const RaggedBatch* batch_ = nullptr;
  std::size_t rows_ = 0;
  RowPlaces places_;
  AdaptedRows adapted_;
  std::vector<float> largest_;              // of Similarities, by thread and row
  std::vector<AttentionPlan> plans_;        // by distinct window and heads
  std::vector<std::size_t> plan_of_stage_;  // by body stage
  absl::Status status_;                     // of the communicator
};

}  // namespace penstock::shard::cpu
