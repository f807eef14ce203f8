// The sequences of one replica group with the blocks and slots they hold, through their life cycle:
//
//   Add -> running -> Retire -> retiring -> Reclaim -> gone
//             \--> Preempt -> retiring -> Requeue -> gone, its Work goes on
//
// Running sequences hold a slot and a reservation. A retiring one is in no later plan; its blocks
// stay retiring and its slot stays taken until no plan in flight names it. Iteration is in order of
// admission (sequence ids rise).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "common/ids.h"
#include "common/plan/group.h"
#include "scheduler/block_pool.h"
#include "scheduler/sequence.h"
#include "scheduler/slot_pool.h"

namespace penstock::scheduler {

class SequenceTable {
 public:
  explicit SequenceTable(const GroupCapacity& capacity);

  // Admits: takes a slot and promises `blocks`, which the admission policy found available, for
  // `tokens` positions.
  Sequence& Add(Work work, SequenceId id, std::uint32_t blocks, std::uint64_t tokens);

  // Running or retiring; null when unknown.
  Sequence* Find(SequenceId id);
  // Running, or preempted and not yet requeued; null when unknown.
  Sequence* FindRunning(RequestId request);
  // Admitted first of those that run; null when none does.
  const Sequence* Oldest() const;

  // The sequence is terminal. If no plan in flight names it, Reclaim may follow at once.
  void Retire(Sequence& sequence);
  // The sequence leaves so that others can grow. Its undrawn reservation is free at once, its
  // blocks when no plan in flight names it; it may still end before.
  void Preempt(Sequence& sequence);
  // Takes a preempted sequence that no plan in flight names out of the table.
  Work Requeue(Sequence& sequence);
  // More of a running sequence's reservation, which was found available.
  void Extend(Sequence& sequence, std::uint32_t blocks, std::uint64_t tokens);
  // Frees blocks and slot of a retiring sequence that no plan in flight names, and forgets it.
  void Reclaim(Sequence& sequence);

  std::map<SequenceId, Sequence>& all() { return sequences_; }
  std::uint32_t running() const {
    return static_cast<std::uint32_t>(by_request_.size()) - preempted_;
  }
  std::uint32_t retiring() const;
  std::uint64_t reserved_tokens() const { return reserved_tokens_; }
  BlockPool& pool() { return pool_; }
  const BlockPool& pool() const { return pool_; }
  SlotPool& slots() { return slots_; }
  const SlotPool& slots() const { return slots_; }

 private:
  BlockPool pool_;
  SlotPool slots_;
  std::map<SequenceId, Sequence> sequences_;
  // Running and preempted ones; looked up, never iterated.
  std::unordered_map<RequestId, SequenceId> by_request_;
  std::uint32_t preempted_ = 0;
  std::uint64_t reserved_tokens_ = 0;  // of the running
};

}  // namespace penstock::scheduler
