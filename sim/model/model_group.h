// The scheduler of one replica group in the model: composes each step and compares it with the
// core's plan (docs/scheduling.md).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/model/decode_partition.h"
#include "sim/model/group_memory.h"
#include "sim/model/model_step.h"
#include "sim/model/step_times.h"

namespace penstock::sim {

class ModelGroup : private GroupMemory {
 public:
  // `lengths` must outlive the group.
  ModelGroup(const scheduler::Config& config, const scheduler::GroupUp& up,
             ExpectedLengths& lengths);

  using GroupMemory::Cancel;
  using GroupMemory::ExpectPinChanges;
  using GroupMemory::FinishAt;
  using GroupMemory::Fits;
  using GroupMemory::Forget;
  using GroupMemory::id;
  using GroupMemory::Lose;
  using GroupMemory::OldestRunning;
  using GroupMemory::running;
  using GroupMemory::TakePreempted;
  using GroupMemory::WhyNever;

  Epoch epoch() const { return epoch_; }
  StepId step() const { return draft_.step; }
  std::size_t plans_in_flight() const { return in_flight_.size(); }
  bool CanPlan() const { return in_flight_.size() < config_.pipeline_depth; }

  // Admission: why a request does not fit now, which prefix it waits for, and why it does not fit
  // into the step being composed.
  std::optional<scheduler::Shortage> WhyNotNow(const ModelRequest& request) const;
  struct Awaited {
    RequestId owner;
    std::uint32_t shared = 0;   // tokens
    std::uint32_t present = 0;  // of these, in the cache
  };
  std::optional<Awaited> AwaitedPrefix(const ModelRequest& request) const;
  std::optional<scheduler::Shortage> WhyNotInStep(const ModelRequest& request) const;
  std::uint32_t CachedTokens(const ModelRequest& request) const;
  // A static batch of equal lengths is open: a later request may join it.
  bool TakesEquals() const;
  // TGI's admission rule: how many requests must be admitted together, and how many of `requests`
  // would be, up to `most`.
  std::uint32_t LeastNewcomers() const;
  std::uint32_t Together(const std::vector<const ModelRequest*>& requests,
                         std::uint32_t most) const;

  // `due`: a request for this group that waited too long, or null.
  void BeginStep(const ModelRequest* due, Time now, OutputReader& core_outputs);
  void Admit(ModelRequest request, SequenceId id, Time now, OutputReader& core_outputs);
  // Returns false if there is no plan.
  bool FinishStep(std::size_t waiting, bool ends_alone, OutputReader& core_outputs);
  void OnResult(const StepResult& result, Time now, OutputReader& core_outputs);
  void AddTo(scheduler::Snapshot& sum) const {
    GroupMemory::AddTo(sum);
    sum.plans_in_flight += static_cast<std::uint32_t>(in_flight_.size());
  }

 private:
  struct Fit {
    std::uint32_t count = 0;
    Budget short_of = Budget::kNone;
  };
  struct InFlight {
    StepId step;
    Duration predicted{0};
    std::vector<std::pair<SequenceId, std::uint32_t>> named;  // with the most tokens
  };

  std::uint32_t SharedBlocks(const ModelSequence& sequence, const std::vector<TokenId>& tokens,
                             std::size_t found) const;
  std::uint32_t MaxRows() const;
  void AddDecode(ModelSequence& sequence, Time now, OutputReader& core_outputs);
  void CopyTail(ModelSequence& sequence);
  void GrowWindow(ModelSequence& sequence, std::uint64_t positions);
  void KeepRow(const ModelSequence& sequence);
  void SplitDecodes(Time now, OutputReader& core_outputs);
  void AddChunk(ModelSequence& sequence, Time now, OutputReader& core_outputs);
  Fit FitOf(std::uint32_t first, std::uint32_t wanted) const;
  Duration TimeAllowed() const;
  void Grow(ModelSequence& sequence, std::uint64_t positions);
  void Name(ModelSequence& sequence, const ModelStep::Rows& rows);
  void Tell(const ModelSequence& sequence, BlockOp::Kind kind, StoreSnapshot snapshot);
  // Where the prompt is cut.
  void SaveState(const ModelSequence& sequence);
  void Describe(std::size_t waiting);
  void TakePart(const SequenceResult& part, Time now, OutputReader& core_outputs);

  const Epoch epoch_;
  StepTimes times_;
  DecodePartition partition_;
  PlanComparison comparison_;
  std::deque<InFlight> in_flight_;
  ModelStep draft_;
  std::vector<PartitionRow> rows_;                          // of the draft
  std::vector<std::optional<std::uint32_t>> row_segments_;  // in the draft
  bool renewed_ = false;                                    // a partition that no plan has named
  scheduler::PrefixUse use_;                                // since the last plan

  // Static batches: the lengths of the last request.
  bool open_ = false;
  std::pair<std::uint32_t, std::uint32_t> batch_;
  std::uint32_t steps_without_admission_ = 0;
};

}  // namespace penstock::sim
