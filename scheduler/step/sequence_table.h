// The sequences of one replica group, with the blocks and slots that they hold:
//
//   Add -> running -> Retire -> retiring -> Reclaim -> gone
//             \--> Preempt -> retiring -> Requeue -> gone; its Work is queued again
//
// A running sequence holds a slot and a reservation. A retiring one is in no later plan. Its blocks
// and its slot stay taken until no plan in flight refers to it. Iteration is in order of admission,
// since sequence ids rise.
#pragma once

#include <cstdint>
#include <map>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "common/kv/slot_pool.h"
#include "common/plan/group.h"
#include "scheduler/kv/block_cache.h"
#include "scheduler/step/sequence.h"

namespace penstock::scheduler {

class SequenceTable {
 public:
  // `sharing`: prompts with a common prefix share its full blocks.
  SequenceTable(const GroupCapacity& capacity, bool sharing, PinLimits pins = {});

  // What a sequence reserves.
  struct Reservation {
    std::uint32_t blocks = 0;         // of KV group 0, those of a match included
    std::uint32_t window_blocks = 0;  // claimed of KV group 1
    std::uint64_t tokens = 0;         // counted against max_batch_total_tokens
  };
  // Adds a running sequence: takes a slot, holds the readable blocks of `match` and reserves the
  // rest. The admission policy checked that all of it is available.
  Sequence& Add(Work work, SequenceId id, const Reservation& reservation, const PrefixMatch& match);

  // Running or retiring; null when unknown.
  Sequence* Find(SequenceId id);
  // The same in constant time; null if the sequence has another slot.
  Sequence* Find(SlotId slot, SequenceId id);
  // Running, or preempted and not queued again yet; null when unknown.
  Sequence* FindRunning(RequestId request);
  // The running sequence that was admitted first; null when none runs.
  const Sequence* Oldest() const;

  // The request of the sequence is over. Reclaim may follow when no plan in flight refers to it.
  void Retire(Sequence& sequence);
  // The sequence is preempted. The undrawn part of its reservation is free at once, its
  // blocks when no plan in flight refers to it. The request may still end before that.
  void Preempt(Sequence& sequence);
  // Removes a preempted sequence that no plan in flight refers to.
  Work Requeue(Sequence& sequence);
  // Adds to the reservation of a running sequence. All of it must be available.
  void Extend(Sequence& sequence, const Reservation& more);
  // Removes a retiring sequence that no plan in flight refers to. Its blocks become free or cached.
  void Reclaim(Sequence& sequence);

  using Sequences = std::pmr::map<SequenceId, Sequence>;
  Sequences& all() { return sequences_; }
  const Sequences& all() const { return sequences_; }
  std::uint32_t running() const {
    return static_cast<std::uint32_t>(by_request_.size()) - preempted_;
  }
  std::uint32_t retiring() const;
  std::uint64_t reserved_tokens() const { return reserved_tokens_; }
  // The rows of a step in which all running sequences decode without drafts.
  std::uint32_t DecodeRows() const {
    return running() - contrastive_.sequences + contrastive_.candidates;
  }
  // Running sequences with contrastive search, and the sum of their candidates.
  struct Contrastive {
    std::uint32_t sequences = 0;
    std::uint32_t candidates = 0;
  };
  const Contrastive& contrastive() const { return contrastive_; }
  // Sequences of suspects, retiring ones too.
  std::uint32_t suspects() const { return suspects_; }
  BlockCache& cache() { return cache_; }
  const BlockCache& cache() const { return cache_; }
  const BlockPool& pool() const { return cache_.pool(); }
  SlotPool& slots() { return slots_; }
  const SlotPool& slots() const { return slots_; }

 private:
  // The sequence does not run any more.
  void Uncount(const Sequence& sequence);

  BlockCache cache_;
  SlotPool slots_;
  // Every step reads all sequences twice, so they lie close together.
  std::pmr::unsynchronized_pool_resource memory_{
      {.max_blocks_per_chunk = 256, .largest_required_pool_block = 4096}};
  Sequences sequences_{&memory_};
  std::vector<Sequence*> by_slot_;  // null: the slot is free
  // Running and preempted sequences. Never iterated: its order differs between compilers.
  std::unordered_map<RequestId, SequenceId> by_request_;
  std::uint32_t preempted_ = 0;
  std::uint64_t reserved_tokens_ = 0;  // of running sequences
  Contrastive contrastive_;
  std::uint32_t suspects_ = 0;
};

}  // namespace penstock::scheduler
