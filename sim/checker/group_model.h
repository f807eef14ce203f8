// The checker's model of one formed group: slots, sequences, plans in flight, budgets. It is built
// from plans and results alone, and checks every plan before it applies it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"
#include "sim/checker/findings.h"
#include "sim/checker/group_kv.h"
#include "sim/checker/request_model.h"

namespace penstock::sim {

struct SequenceModel {
  RequestId request;
  SlotId slot;
  KvTable kv;
  std::uint32_t prompt_length = 0;     // of this start: the request's prompt and earlier tokens
  std::uint32_t base = 0;              // tokens that earlier starts generated
  std::uint32_t planned = 0;           // prompt positions in plans or found in the cache
  std::uint32_t generated = 0;         // tokens in results, reported or surplus
  std::uint32_t tokens_in_flight = 0;  // the most that plans in flight yield
  std::uint32_t plans_in_flight = 0;
  std::uint32_t candidates = 0;  // of contrastive search, else 0
  // With K and V, since those of longer texts are others: LengthRule::kRecompute.
  std::uint64_t most_positions = UINT64_MAX;
  bool ended = false;  // terminal or preempted: in no later plan
  // Padded KV layout: the step in which it joined a sub-batch. The result of that step frees its
  // blocks.
  std::optional<StepId> joined;
  bool listed = false;  // in this plan

  // Plans from the next one on begin at or after this position: results have given the tokens
  // before it.
  std::uint32_t Known() const {
    if (generated == 0) return planned;
    return prompt_length + generated - (candidates > 0 ? 0 : 1);
  }
  // Positions that decodes after those in flight may fill. The newest token has K and V with
  // contrastive search only.
  std::uint64_t PositionsLeft() const {
    const std::uint64_t length = std::uint64_t{prompt_length} + generated + tokens_in_flight;
    const std::uint64_t positions = length - (candidates > 0 ? 0 : 1);
    return most_positions - std::min(positions, most_positions);
  }
};

class GroupModel {
 public:
  GroupModel(const scheduler::Config& config, const scheduler::GroupUp& up, Findings& findings);

  GroupId id() const { return id_; }
  Epoch epoch() const { return epoch_; }
  std::uint64_t arithmetic_class() const { return arithmetic_class_; }
  const std::map<SequenceId, SequenceModel>& sequences() const { return sequences_; }
  const GroupCapacity& capacity() const { return capacity_; }
  std::uint32_t step_tokens() const {
    return std::min(config_.max_step_tokens, capacity_.max_step_tokens);
  }
  std::uint32_t prefill_tokens() const {
    const std::uint32_t share = config_.max_batch_prefill_tokens;
    return share > 0 ? std::min(share, step_tokens()) : step_tokens();
  }

  // Of a decode without candidates.
  std::uint32_t MostRows(const scheduler::Arrival& arrival) const {
    return arrival.grammar.empty() ? config_.max_decode_rows : 1 + capacity_.forced_tokens;
  }

  // A decision admits the request; the plan that starts it may follow later.
  void Admit(RequestModel& request);
  void CheckPlan(const scheduler::PlanOut& out, const scheduler::StepInfo& info,
                 std::map<RequestId, RequestModel>& requests, std::set<SequenceId>& used_ids);
  // Changes nothing and returns false if the result is not that of the oldest plan in flight.
  bool TakeResult(const StepResult& result);
  // Null unless the sequence runs or a plan in flight names it.
  const SequenceModel* Find(SequenceId sequence) const {
    const auto it = sequences_.find(sequence);
    return it == sequences_.end() ? nullptr : &it->second;
  }
  // The request's sequence ended, or was preempted.
  void End(RequestModel& request);
  std::uint32_t in_flight() const { return static_cast<std::uint32_t>(in_flight_.size()); }
  std::uint32_t running() const { return running_; }  // admitted, not ended
  std::uint32_t retiring() const { return static_cast<std::uint32_t>(sequences_.size()) - live_; }
  const KvModel& kv() const { return kv_.full(); }
  const KvModel& window_kv() const { return kv_.window(); }
  // Slots that the shards consider occupied.
  std::size_t slots_taken() const { return slots_.size(); }
  struct Reclaimed {
    std::size_t sequences = 0;
    std::size_t blocks = 0;
  };
  // The sequences whose last plan in flight returned since the last call, and their blocks.
  Reclaimed TakeReclaimed() { return std::exchange(reclaimed_, {}); }
  // Whether the worst cases of all running requests fit together. Then no decode waits for memory.
  bool HasRoomForAll(const std::map<RequestId, RequestModel>& requests) const;
  bool Fits(const RequestModel& request) const;
  // Whether the group computes the bits of the request's output so far.
  bool SameArithmetic(const RequestModel& request) const {
    return config_.recovery_timeout == Duration(0) || request.received() == 0 ||
           request.arithmetic_class == arithmetic_class_;
  }
  // Whether guaranteed admission could admit the request.
  bool HasRoomFor(const RequestModel& request,
                  const std::map<RequestId, RequestModel>& requests) const;
  // G4: whether the next plan could compute something for an admitted sequence.
  bool SomethingRunnable(const std::map<RequestId, RequestModel>& requests) const;
  struct Blocks {
    std::uint64_t in_full = 0;    // KV group 0
    std::uint64_t in_window = 0;  // the KV group with a window
  };
  // G7: the most blocks that sequences which cannot be preempted may come to hold.
  Blocks WorstCase(const std::map<RequestId, RequestModel>& requests) const;

 private:
  struct InFlight {
    StepId step;
    std::map<SequenceId, std::uint32_t> named;  // most tokens
  };

  // The minimum number of rows of a decode of the request.
  std::uint32_t RowsOf(const RequestModel& request) const {
    const std::uint32_t candidates = request.arrival.sampling.Candidates();
    return candidates > 0 ? candidates : 1;
  }
  void Complain(const char* guarantee, const std::string& what);
  // The sequence on the slot, as the shards know it; null if there is none.
  SequenceModel* FindSlot(SlotId slot);
  void CheckHeader(const StepPlan& plan);
  void ApplyEnds(const StepPlan& plan);
  void ApplyStart(const SequenceStart& start, RequestModel& request,
                  std::set<SequenceId>& used_ids);
  void ApplyBlockOp(const BlockOp& op);
  void ApplySnapshots(const StepPlan& plan, BlockOp::Kind kind);
  void MoveWindows(const StepPlan& plan);
  void ApplySegment(const Segment& segment, const RequestModel& request, SequenceModel& sequence,
                    InFlight& step);
  std::uint32_t PlanPrompt(const Segment& segment, SequenceModel& sequence);
  std::uint32_t PlanDecode(const Segment& segment, const RequestModel& request,
                           SequenceModel& sequence);
  void CheckBudgets(const StepPlan& plan, const scheduler::StepInfo& info);
  void CheckTotalTokens(const std::map<RequestId, RequestModel>& requests);
  void ApplyRows(const StepPlan& plan);
  void CheckRows(const StepPlan& plan, const scheduler::StepInfo& info);
  void CheckCellsPromised(const std::map<RequestId, RequestModel>& requests);
  std::uint64_t LeastCells(const std::map<RequestId, RequestModel>& requests,
                           const RequestModel* newcomer) const;
  void CheckStallFree(const StepPlan& plan, const std::map<RequestId, RequestModel>& requests);
  static bool Decodable(const SequenceModel& sequence, const RequestModel& request) {
    return !sequence.ended && sequence.PositionsLeft() > 0 &&
           sequence.planned == sequence.prompt_length &&
           sequence.base + sequence.generated + sequence.tokens_in_flight < request.Last();
  }
  void TakePart(const SequenceResult& part, StepId step);
  void ReclaimUnnamed(SequenceId id);

  const scheduler::Config config_;
  const GroupId id_;
  const Epoch epoch_;
  const std::uint64_t arithmetic_class_;
  const GroupCapacity capacity_;
  Findings& findings_;
  GroupKv kv_;
  StepId last_step_;
  std::map<SequenceId, SequenceModel> sequences_;  // running, or named by a plan in flight
  std::map<SlotId, SequenceId> slots_;             // as the shards know them
  std::deque<InFlight> in_flight_;
  std::uint32_t live_ = 0;
  std::uint32_t running_ = 0;
  std::uint64_t reserved_tokens_ = 0;
  Reclaimed reclaimed_;
  std::uint32_t decode_rows_ = 0;  // of a step in which all running decode
};

}  // namespace penstock::sim
