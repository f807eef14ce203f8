// The RankEngine of a real model: opens the folder, loads this rank's weights, forms the group,
// sizes the cache, and hands plans to a ModelExecutor. Knows the Backend interface only; which
// backend it is comes in as a factory.
//
// Threading: as RankEngine.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "shard/backend/backend.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/executor/cache_plan.h"
#include "shard/executor/memory_plan.h"
#include "shard/executor/model_executor.h"
#include "shard/executor/rank_device.h"
#include "shard/executor/warmup.h"
#include "shard/model/model.h"
#include "shard/parallel/communicator.h"
#include "shard/service/rank_engine.h"

namespace penstock::shard {

// Chooses the backend, and refuses before anything is read; then reads the weights for it.
using BackendFactory = std::function<absl::StatusOr<std::unique_ptr<Backend>>(
    const Model&, const LoadProgress& progress)>;

// What a rank's weights will take of memory, before they are read.
using WeightMeasure = std::function<absl::StatusOr<std::uint64_t>(const Model&)>;

struct ModelRankOptions {
  ModelOptions model;
  std::uint32_t block_size = 16;
  bool padded = false;  // KV layout
  KvMemory kv;
  std::shared_ptr<RankDevice> device = std::make_shared<HostDevice>();
  bool contrastive_search = false;  // keep hidden states, offer contrastive search
  bool grammars = true;             // offered, where the folder has a tokenizer that they can use
  WatermarkSettings watermark;
  BackendFactory make_backend;
  WeightMeasure weight_bytes;  // in that backend; empty: Model::WeightBytes
  std::string table_folder;    // of the warm-up's table; empty: none is kept
  std::string machine;         // one line: on what its times were measured
  bool prefault_all = false;   // all of the KV cache, not only the blocks that are used first
};

class ModelRank final : public RankEngine {
 public:
  explicit ModelRank(ModelRankOptions options);
  ~ModelRank() override;

  EngineFacts Facts() const override;
  absl::Status Load(const LoadCallback& progress) override;
  absl::Status Configure(const GroupSetup& setup) override;
  absl::StatusOr<WarmupReport> Warmup() override;
  absl::StatusOr<std::uint64_t> Commit(const PoolSize& pool) override;
  absl::StatusOr<StepResult> Execute(const StepPlan& plan) override {
    return executor_->Execute(plan);
  }
  absl::StatusOr<bool> Begin(const StepPlan& plan, std::function<void()> ready) override {
    return executor_->Begin(plan, std::move(ready));
  }
  absl::StatusOr<StepResult> Collect() override { return executor_->Collect(); }
  void Reset() override { executor_->Reset(); }
  void Interrupt() override;

 private:
  absl::Status MeasureWeights();
  absl::Status PrintPlan() const;
  absl::Status MakeBackend(const LoadCallback& progress);
  bool MayOfferGrammars() const;
  void StartGrammars();
  void FinishGrammars();
  absl::Status JoinGroup();
  absl::StatusOr<std::shared_ptr<Communicator>> JoinHosts() const;
  absl::StatusOr<PoolSize> CountPool() const;
  std::string TableIdentity(const WarmupShape& shape) const;
  absl::StatusOr<std::uint32_t> LongestSequence(const PoolSize& pool);
  // Rank 0's samples on all ranks.
  absl::Status ShareTable(std::vector<StepTimeSample>& samples);
  MemoryNeeds Needs(std::uint32_t step_tokens, const DeviceMemory& memory) const;
  PagedLayout Layout() const;
  CachePlan Cache() const { return {Layout(), options_.padded}; }
  // Rows of all candidates of a step.
  std::uint32_t CandidateRows() const;
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }

  const ModelRankOptions options_;
  std::optional<Model> model_;
  std::uint64_t weight_bytes_ = 0;  // of this rank
  std::unique_ptr<Backend> backend_;
  GroupSetup setup_;
  std::unique_ptr<GrammarCache> grammars_;  // rank 0
  std::unique_ptr<ModelExecutor> executor_;

  std::atomic<bool> interrupted_ = false;
  std::mutex communicator_mutex_;          // for Interrupt; the model thread reads both without
  std::shared_ptr<Communicator> control_;  // of host memory: picks and agreements
  std::shared_ptr<Communicator> communicator_;  // of the device's memory, for the backend
};

}  // namespace penstock::shard
