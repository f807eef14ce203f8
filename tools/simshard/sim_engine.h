// A shard without a model. It takes every plan as a real one would and makes tokens by rule
// (TokenScript). It checks that a real model would have read the right keys (SimCache). A violation
// ends the process.
//
// Threading: as RankEngine. Waiting (step time, hang) ends at its deadline or by Interrupt.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/time.h"
#include "scheduler/cost/machine_model.h"
#include "shard/executor/slot_table.h"
#include "shard/service/rank_engine.h"
#include "text/tokenizer.h"
#include "tools/simshard/fault_script.h"
#include "tools/simshard/model_facts.h"
#include "tools/simshard/sim_cache.h"
#include "tools/simshard/token_script.h"

namespace penstock::simshard {

struct SimOptions {
  std::string model_folder;  // empty: a plain vocabulary
  std::uint32_t vocabulary = 32'000;
  TokenRule tokens = TokenRule::kHash;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::uint32_t blocks = 4096;
  std::uint32_t block_size = 16;
  std::uint32_t window = 0;               // of KV group 1; 0 = there is none
  std::uint32_t window_blocks = 0;        // of KV group 1
  std::uint32_t max_sequence_length = 0;  // 0 = the model's, else all blocks
  Duration step_time{0};
  Duration token_time{0};                               // for each row beside step_time
  std::optional<scheduler::MachineModel> machine = {};  // its step times beside both
  double time_scale = 1;                                // factor of every step's time
  std::uint64_t fail_at_step = 0;                       // 0 = never
  std::uint64_t hang_at_step = 0;                       // 0 = never
  FaultScript faults = {};                              // of this rank
  std::function<void()> kill = [] {};                   // by FaultScript; may not return
  // Called at fail_at_step and at a violation, with one line. It may not return. If it does, the
  // step ends with INTERNAL.
  std::function<void(const std::string&)> die = [](const std::string&) {};
};

class SimEngine final : public shard::RankEngine {
 public:
  explicit SimEngine(SimOptions options);

  v1::DescribeResponse Facts() const override;
  absl::Status Load(const shard::LoadCallback& progress) override;
  absl::Status Configure(const v1::ConfigureRequest& setup) override;
  absl::StatusOr<v1::WarmupResponse> Warmup() override;
  absl::StatusOr<std::uint64_t> Commit(const shard::PoolSize& pool) override;
  absl::StatusOr<StepResult> Execute(const StepPlan& plan) override;
  // Any folder with an adapter_config.json. The tokens of a sequence depend on its adapter.
  absl::StatusOr<shard::ReadyAdapter> ReadAdapter(const std::string& folder) const override;
  void AddAdapter(const std::string& id, shard::ReadyAdapter adapter) override {
    adapters_[id] = std::move(adapter);
  }
  void RemoveAdapter(const std::string& id) override { adapters_.erase(id); }
  void Reset() override;
  void Interrupt() override;

 private:
  struct Story {
    TokenScript script;
    std::vector<std::uint64_t> hashes;  // by position, as far as tokens are known
  };

  Duration StepTime(const scheduler::StepShape& step) const;
  scheduler::StepShape ShapeOf(const std::vector<Segment>& segments);
  absl::Status Disturb(const StepPlan& plan, const StepFaults& faults);
  void Falsify(StepResult& result, const StepFaults& faults) const;
  absl::Status WaitUntil(std::optional<Time> deadline);
  void ApplyControl(const StepPlan& plan);
  void WriteRows(const Segment& segment);
  absl::Status CheckContext(const Segment& segment, std::uint32_t first_row);
  SequenceResult Answer(const Segment& segment);
  SampledToken Sample(shard::RankSequence& sequence, Story& story);
  void ExtendHashes(const shard::RankSequence& sequence, Story& story) const;
  absl::Status Die(const std::string& why);

  SimOptions options_;
  ModelFacts facts_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;  // for echoes of a model folder
  bool loaded_ = false;
  std::map<std::string, shard::ReadyAdapter> adapters_;
  v1::ConfigureRequest setup_;
  shard::SlotTable slots_;
  std::vector<std::optional<Story>> stories_;  // by slot
  bool has_window() const { return options_.window > 0 && setup_.limits().window_tables(); }
  // An error unless the cache of KV group `group` has the right positions for each row from
  // `first_row` on.
  absl::Status CheckGroup(const shard::RankSequence& sequence, std::uint32_t group,
                          std::span<const std::uint64_t> hashes, std::uint32_t first_row);
  void Write(const shard::RankSequence& sequence, std::uint32_t position, std::uint64_t hash);
  std::uint64_t CacheBytes() const;

  std::vector<SimCache> caches_;  // by KV group
  Time free_at_;                  // when the simulated device has done what it was given

  std::mutex mutex_;
  std::condition_variable interrupted_changed_;
  bool interrupted_ = false;  // under mutex_
};

}  // namespace penstock::simshard
