// The sequences of one replica group in the model, with their blocks and reservations: what may be
// admitted beside them, which of them must be preempted, and how they end. It keeps what each
// sequence is, and computes everything else when it is asked (docs/scheduling-admission.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/scheduler.h"
#include "sim/model/block_store.h"
#include "sim/model/expected_lengths.h"
#include "sim/model/group_needs.h"
#include "sim/model/model_sequence.h"
#include "sim/model/output_reader.h"

namespace penstock::sim {

class GroupMemory : protected GroupNeeds {
 public:
  // `lengths` must outlive the object.
  GroupMemory(const scheduler::Config& config, const scheduler::GroupUp& up,
              ExpectedLengths& lengths);

  GroupId id() const { return id_; }
  std::uint32_t running() const {
    return static_cast<std::uint32_t>(
        std::ranges::count_if(sequences_, [](const auto& each) { return !each.second.retiring; }));
  }
  std::optional<RequestId> OldestRunning() const {
    for (const auto& [id, sequence] : sequences_) {
      if (!sequence.retiring) return sequence.id();
    }
    return std::nullopt;
  }
  using GroupNeeds::Fits;
  using GroupNeeds::WhyNever;
  // Preempted requests that no plan in flight names.
  std::vector<ModelRequest> TakePreempted() { return std::exchange(preempted_, {}); }

  bool Cancel(RequestId request, Time now, OutputReader& core_outputs);
  bool FinishAt(RequestId request, std::uint32_t tokens, Time now, OutputReader& core_outputs);
  void Forget(const scheduler::ForgetPrefixes& what) { store_.Forget(what.tenant, what.made_by); }
  void ExpectPinChanges(OutputReader& core_outputs);
  void Lose(const scheduler::GroupLost& lost, Time now, OutputReader& core_outputs);
  void AddTo(scheduler::Snapshot& sum) const;

 protected:
  std::uint32_t AvailableBlocks() const;
  std::uint32_t AvailableInWindow() const;
  // Whether the tail of a match can be copied with these numbers of blocks left.
  bool TailFits(std::uint32_t blocks, std::uint32_t in_window) const;
  // What the request finds if step `reader` starts it.
  StoreMatch Match(const ModelRequest& request, StepId reader) const;
  // Blocks of the match that cost nothing, since sequences hold them.
  std::uint32_t BlocksInUse(const StoreMatch& match) const;
  // Why the request cannot run besides those that run and the others.
  std::optional<scheduler::Shortage> WhyNotBeside(const ModelRequest& request,
                                                  const std::vector<const ModelRequest*>& others,
                                                  StepId reader) const;
  ModelSequence& Add(ModelRequest request, SequenceId id, const StoreMatch& match);

  // Sequences that reached the original length with no plan in flight begin again.
  void Recompute(ModelSequence& sequence, Time now, OutputReader& core_outputs);

  // All that had their quantum give their places to a request that is due.
  void YieldTo(RequestId due, StepId step, Time now, OutputReader& core_outputs);

  // Memory of decodes of at most `max_rows_` rows.
  void PreemptUntilCovered(StepId step, Time now, OutputReader& core_outputs);
  bool Reserve(ModelSequence& sequence, Time now, OutputReader& core_outputs);
  void UpdateHeadroom();

  // The sequence computed these positions in its own blocks.
  void Enter(ModelSequence& sequence, StepId step);
  void Pin(ModelSequence& sequence, StepId step);
  // The request is over.
  void Finish(ModelSequence& sequence, Time now, OutputReader& core_outputs);
  void ReleaseBlocks(ModelSequence& sequence);
  void ReclaimBlocks(ModelSequence& sequence);
  void ReclaimUnnamed(SequenceId id, Time now, OutputReader& core_outputs);
  Decision Say(const ModelSequence& sequence, DecisionKind kind, Time now) const;

  const GroupId id_;
  ExpectedLengths& lengths_;
  BlockStore store_;
  std::map<SequenceId, ModelSequence> sequences_;
  std::vector<SequenceId> ended_;  // that the shards do not know yet
  std::uint32_t max_rows_ = 1;

 private:
  struct Deficit {
    std::uint64_t blocks = 0;
    std::uint64_t in_window = 0;
    std::uint64_t tokens = 0;
    bool none() const { return blocks == 0 && in_window == 0 && tokens == 0; }
    void operator+=(const Deficit& more) {
      blocks += more.blocks;
      in_window += more.in_window;
      tokens += more.tokens;
    }
    void operator-=(const Deficit& less) {
      blocks -= less.blocks;
      in_window -= less.in_window;
      tokens -= less.tokens;
    }
  };

  std::uint64_t ReservedTokens() const {
    std::uint64_t tokens = 0;
    for (const auto& [id, sequence] : sequences_) {
      if (!sequence.retiring) tokens += sequence.reserved_tokens;
    }
    return tokens;
  }
  Deficit DeficitOf(const ModelSequence& sequence, std::uint64_t positions,
                    std::uint64_t tokens) const;
  Deficit DecodeDeficit(const ModelSequence& sequence) const;
  bool Covered(const Deficit& deficit, bool with_retiring) const;
  ModelSequence* Victim();
  scheduler::Shortage Exceeded() const;
  // Leaves as the decision says, and is queued again.
  void Leave(ModelSequence& sequence, const Decision& decision, Time now,
             OutputReader& core_outputs);
  void Preempt(ModelSequence& victim, std::optional<RequestId> beneficiary, StepId step, Time now,
               OutputReader& core_outputs);
  void Follow(ModelSequence& sequence, const std::vector<History>& histories, StepId step);
  void Attach(const ModelSequence& sequence, StoreBlock node, std::size_t index, StepId step);
  ModelSequence* FindRunning(RequestId request);

  std::vector<ModelRequest> preempted_;
  Deficit unreserved_;  // of the decodes without memory
  bool decode_waits_ = false;
  std::uint32_t headroom_ = 0;
  std::uint32_t window_headroom_ = 0;
};

}  // namespace penstock::sim
