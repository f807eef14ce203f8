// The RankEngine of a model: opens the folder, loads the weights of this rank, joins the group,
// sizes the cache, and creates the ModelExecutor that runs the plans. It knows only the Backend
// interface; a factory creates the backend.
//
// Threading: as RankEngine.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/adapter_name.h"
#include "shard/adapters/lora_adapter.h"
#include "shard/backend/backend.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/executor/adapter_table.h"
#include "shard/executor/head_layers.h"
#include "shard/executor/kv_layout.h"
#include "shard/executor/memory_plan.h"
#include "shard/executor/model_executor.h"
#include "shard/executor/rank_device.h"
#include "shard/executor/text_embedder.h"
#include "shard/executor/warmup.h"
#include "shard/model/model.h"
#include "shard/parallel/communicator.h"
#include "shard/service/rank_engine.h"

namespace penstock::shard {

// Opens the folder of a model; Model::Open, or another way.
using OpenModel = std::function<absl::StatusOr<Model>(const ModelOptions&)>;

// Chooses the backend and reads its weights. Refuses before it reads anything.
using BackendFactory = std::function<absl::StatusOr<std::unique_ptr<Backend>>(
    const Model&, const LoadProgress& progress)>;

// The memory that the weights of a rank will use, before they are read.
using WeightMeasure = std::function<absl::StatusOr<std::uint64_t>(const Model&)>;

struct ModelRankOptions {
  ModelOptions model;
  std::uint32_t block_size = 16;
  std::shared_ptr<const KvLayout> kv_layout = std::make_shared<KvLayout>();
  KvMemory kv;
  std::shared_ptr<RankDevice> device = std::make_shared<HostDevice>();
  bool contrastive_search = false;  // offered; needs hidden states in the cache
  bool grammars = true;             // offered if the folder has a usable tokenizer
  WatermarkSettings watermark;
  std::vector<AdapterFolder> adapters;  // loaded with the model
  OpenModel open_model = Model::Open;
  BackendFactory make_backend;
  // Gets the line of the memory plan before the weights are read. May be empty.
  std::function<void(const std::string& plan)> on_plan;
  WeightMeasure weight_bytes;  // by backend; empty: Model::WeightBytes
  std::string table_folder;    // of the warm-up table; empty: none is kept
  std::string machine;         // one line that identifies the machine of that table
  bool prefault_all = false;   // all of the KV cache, not only the blocks that are used first
};

// What a rank will need, and what its device has.
struct RankPlan {
  MemoryNeeds needs;
  DeviceMemory memory;
};

class ModelRank final : public RankEngine {
 public:
  explicit ModelRank(ModelRankOptions options);
  ~ModelRank() override;

  // Opens the folder and computes the memory plan. Reads no weights.
  absl::StatusOr<RankPlan> Plan();
  // The model of the opened folder.
  const Model& model() const { return *model_; }

  v1::DescribeResponse Facts() const override;
  absl::Status Load(const LoadCallback& progress) override;
  absl::Status Configure(const v1::ConfigureRequest& setup) override;
  absl::StatusOr<v1::WarmupResponse> Warmup() override;
  absl::StatusOr<std::uint64_t> Commit(const PoolSize& pool) override;
  absl::StatusOr<StepResult> Execute(const StepPlan& plan) override {
    return executor_->Execute(plan);
  }
  absl::StatusOr<bool> Begin(const StepPlan& plan, std::function<void()> ready) override {
    return executor_->Begin(plan, std::move(ready));
  }
  absl::StatusOr<StepResult> Collect() override { return executor_->Collect(); }
  absl::StatusOr<std::vector<std::vector<float>>> Embed(std::span<const EmbedText> texts) override;
  absl::StatusOr<ReadyAdapter> ReadAdapter(const std::string& folder) const override;
  void AddAdapter(const std::string& id, ReadyAdapter adapter) override {
    adapters_.Add(id, std::move(adapter));
  }
  void RemoveAdapter(const std::string& id) override { adapters_.Remove(id); }
  void Reset() override { executor_->Reset(); }
  void Interrupt() override;

 private:
  absl::Status CheckOptions() const;
  absl::Status MakeBackend(const LoadCallback& progress);
  bool MayOfferGrammars() const;
  void StartGrammars();
  void FinishGrammars();
  absl::Status JoinGroup();
  absl::StatusOr<PoolSize> CountPool() const;
  std::string TableIdentity(const WarmupShape& shape) const;
  // Copies the samples of rank 0 to all ranks.
  absl::Status ShareTable(std::vector<StepTimeSample>& samples);
  MemoryNeeds Needs(std::uint32_t step_tokens, const DeviceMemory& memory) const;
  PagedLayout Layout() const;
  std::unique_ptr<CachePlan> Cache() const;
  // The blocks that the texts of a step need, of a model that gives vectors.
  std::uint32_t TextBlocks() const;
  void MakeEmbedder(const PoolSize& pool);
  // Candidate rows of one step, and draft rows.
  std::uint32_t CandidateRows() const;
  std::uint32_t DraftRows() const;
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }

  const ModelRankOptions options_;
  std::optional<Model> model_;
  std::uint64_t weight_bytes_ = 0;  // of this rank
  std::unique_ptr<Backend> backend_;
  std::vector<LoraAdapter> read_adapters_;  // of options_.adapters, until the backend has them
  AdapterTable adapters_;
  // The last warm-up, so that a router that is started again need not wait for a new one.
  struct {
    std::string identity;
    std::vector<StepTimeSample> times;
  } measured_;
  v1::ConfigureRequest setup_;
  std::unique_ptr<GrammarCache> grammars_;  // rank 0
  std::unique_ptr<ModelExecutor> executor_;
  // For a model that returns vectors.
  HeadLayers head_;
  std::unique_ptr<TextEmbedder> embedder_;

  std::atomic<bool> interrupted_ = false;
  std::mutex communicator_mutex_;  // of the next two, for Interrupt; the model thread reads them
                                   // without it
  std::shared_ptr<Communicator> control_;       // of host memory, for tokens and agreements
  std::shared_ptr<Communicator> communicator_;  // of device memory, for the backend
};

}  // namespace penstock::shard
