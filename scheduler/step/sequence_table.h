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
  // `sharing`: full blocks are kept and found again by later prompts that begin alike.
  SequenceTable(const GroupCapacity& capacity, bool sharing, PinLimits pins = {});

  // Admits: takes a slot, holds the readable blocks of `match` and promises the rest of `blocks`,
  // for `tokens` positions. The admission policy found both available.
  Sequence& Add(Work work, SequenceId id, std::uint32_t blocks, std::uint64_t tokens,
                const PrefixMatch& match);

  // Running or retiring; null when unknown.
  Sequence* Find(SequenceId id);
  // The same in constant time; null also when it has another slot.
  Sequence* Find(SlotId slot, SequenceId id);
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
  // Frees (or leaves cached) blocks and frees the slot of a retiring sequence that no plan in
  // flight names, and forgets it.
  void Reclaim(Sequence& sequence);

  using Sequences = std::pmr::map<SequenceId, Sequence>;
  Sequences& all() { return sequences_; }
  const Sequences& all() const { return sequences_; }
  std::uint32_t running() const {
    return static_cast<std::uint32_t>(by_request_.size()) - preempted_;
  }
  std::uint32_t retiring() const;
  std::uint64_t reserved_tokens() const { return reserved_tokens_; }
  // Of a step in which all running sequences decode without drafts.
  std::uint32_t DecodeRows() const {
    return running() - contrastive_.sequences + contrastive_.candidates;
  }
  // Of the running: those with contrastive search, and the candidates of all of them.
  struct Contrastive {
    std::uint32_t sequences = 0;
    std::uint32_t candidates = 0;
  };
  const Contrastive& contrastive() const { return contrastive_; }
  BlockCache& cache() { return cache_; }
  const BlockCache& cache() const { return cache_; }
  const BlockPool& pool() const { return cache_.pool(); }
  SlotPool& slots() { return slots_; }
  const SlotPool& slots() const { return slots_; }

 private:
  // It no longer counts as running.
  void Uncount(const Sequence& sequence);

  BlockCache cache_;
  SlotPool slots_;
  // Sequences lie together: every step reads all of them, twice.
  std::pmr::unsynchronized_pool_resource memory_{
      {.max_blocks_per_chunk = 256, .largest_required_pool_block = 4096}};
  Sequences sequences_{&memory_};
  std::vector<Sequence*> by_slot_;  // null: the slot is free
  // Running and preempted ones; looked up, never iterated.
  std::unordered_map<RequestId, SequenceId> by_request_;
  std::uint32_t preempted_ = 0;
  std::uint64_t reserved_tokens_ = 0;  // of the running
  Contrastive contrastive_;
};

}  // namespace penstock::scheduler
