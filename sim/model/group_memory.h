// The sequences of one replica group in the model, with their blocks and reservations: what may be
// admitted beside them, which of them must be preempted, and how they end. It keeps what each
// sequence is, and computes everything else when it is asked (docs/scheduling-admission.md).
#pragma once

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
#include "sim/model/model_sequence.h"
#include "sim/model/told.h"

namespace penstock::sim {

class GroupMemory {
 public:
  // `lengths` must outlive the object.
  GroupMemory(const scheduler::Config& config, const scheduler::GroupUp& up,
              ExpectedLengths& lengths);

  GroupId id() const { return id_; }
  std::uint32_t running() const;
  std::optional<RequestId> OldestRunning() const;
  std::optional<scheduler::Shortage> WhyNever(const scheduler::Arrival& arrival) const;
  // Preempted requests that no plan in flight names.
  std::vector<ModelRequest> TakePreempted() { return std::exchange(preempted_, {}); }

  bool Cancel(RequestId request, Time now, Told& told);
  bool FinishAt(RequestId request, std::uint32_t tokens, Time now, Told& told);
  void Forget(const scheduler::ForgetPrefixes& what) { store_.Forget(what.tenant, what.made_by); }
  void ExpectPinChanges(Told& told);
  void Lose(Time now, Told& told);
  void AddTo(scheduler::Snapshot& sum) const;

 protected:
  bool padded() const { return capacity_.cells > 0; }
  std::uint32_t StepTokens() const;
  std::uint32_t PrefillTokens() const;

  // Admission.
  static bool NeedsEveryRow(const ModelRequest& request);
  std::uint64_t TokensToReserve(const ModelRequest& request) const;
  std::uint32_t BlocksToReserve(const ModelRequest& request) const;
  std::uint32_t AvailableBlocks() const;
  // Which prompts may share blocks: those of one tenant and, with a length rule, of one kind of
  // text (common/plan/group.h).
  std::string RootOf(const ModelRequest& request) const;
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
  void Recompute(ModelSequence& sequence, Time now, Told& told);

  // Memory of decodes of at most `max_rows_` rows.
  void PreemptUntilCovered(StepId step, Time now, Told& told);
  bool Reserve(ModelSequence& sequence, Time now, Told& told);
  void UpdateHeadroom();

  // The sequence computed these positions in its own blocks.
  void Enter(ModelSequence& sequence, StepId step);
  void Pin(ModelSequence& sequence, StepId step);
  // The request is over.
  void Finish(ModelSequence& sequence, Time now, Told& told);
  void ReleaseBlocks(ModelSequence& sequence);
  void ReclaimBlocks(ModelSequence& sequence);
  void ReclaimUnnamed(SequenceId id, Time now, Told& told);
  Decision Say(const ModelSequence& sequence, DecisionKind kind, Time now) const;

  const scheduler::Config config_;
  const GroupId id_;
  const GroupCapacity capacity_;
  ExpectedLengths& lengths_;
  BlockStore store_;
  std::map<SequenceId, ModelSequence> sequences_;
  std::vector<SequenceId> ended_;  // that the shards do not know yet
  std::uint32_t max_rows_ = 1;

 private:
  struct Deficit {
    std::uint64_t blocks = 0;
    std::uint64_t tokens = 0;
    bool none() const { return blocks == 0 && tokens == 0; }
  };

  std::uint32_t Blocks(std::uint64_t positions) const;
  std::uint32_t LengthOf(const ModelRequest& request) const;
  bool MayBePreempted(const ModelRequest& request) const;
  std::uint64_t ReservedTokens() const;
  Deficit DeficitOf(const ModelSequence& sequence, std::uint64_t positions,
                    std::uint64_t tokens) const;
  Deficit DecodeDeficit(const ModelSequence& sequence) const;
  bool Covered(const Deficit& deficit, bool with_retiring) const;
  ModelSequence* Victim();
  void Preempt(ModelSequence& victim, std::optional<RequestId> beneficiary, StepId step, Time now,
               Told& told);
  ModelSequence* FindRunning(RequestId request);

  std::vector<ModelRequest> preempted_;
  Deficit unreserved_;  // of the decodes without memory
  bool decode_waits_ = false;
  std::uint32_t headroom_ = 0;
};

}  // namespace penstock::sim
