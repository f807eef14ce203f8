#include "scheduler/step/sequence_table.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace penstock::scheduler {

SequenceTable::SequenceTable(const GroupCapacity& capacity, bool sharing, PinLimits pins)
    : cache_(capacity.blocks, capacity.block_size, sharing, pins,
             {capacity.window, capacity.window_blocks}, capacity.snapshots),
      slots_(capacity.slots),
      by_slot_(capacity.slots, nullptr) {}

Sequence& SequenceTable::Add(Work work, SequenceId id, const Reservation& reservation,
                             const PrefixMatch& match) {
  const auto [it, fresh] = sequences_.try_emplace(id);
  PENSTOCK_CHECK(fresh, "every start is a new sequence id");
  Sequence& sequence = it->second;
  sequence.id = id;
  sequence.slot = slots_.Take();
  by_slot_[sequence.slot.value()] = &sequence;
  sequence.blocks.Adopt(cache_, match);
  PENSTOCK_CHECK(sequence.blocks.Reserve(cache_, reservation.blocks - match.blocks) &&
                     sequence.window.Claim(cache_, reservation.window_blocks),
                 "an admission reserves what is available");
  sequence.window.Adopt(cache_, match);
  sequence.snapshot = cache_.HoldSnapshot(match);
  sequence.cached_length = match.blocks * cache_.block_size();
  if (cache_.BeginTail(match)) {
    sequence.tail_to_copy = match.tail;
    sequence.cached_length += match.tail_tokens;
  }
  sequence.prompt_planned = sequence.cached_length;
  static_cast<Work&>(sequence) = std::move(work);
  // Reserves memory for all tokens that it may generate, so that no step allocates.
  const std::uint64_t tokens = reservation.tokens;
  sequence.generated.reserve(tokens -
                             std::min<std::uint64_t>(tokens, sequence.request.prompt.size()));
  sequence.resumed = static_cast<std::uint32_t>(sequence.generated.size());
  sequence.tokens_received = sequence.resumed;
  sequence.reserved_tokens = tokens;
  reserved_tokens_ += tokens;
  if (sequence.Candidates() > 0) {
    ++contrastive_.sequences;
    contrastive_.candidates += sequence.Candidates();
  }
  if (sequence.Suspect()) ++suspects_;
  by_request_.emplace(sequence.request.request, id);
  return sequence;
}

Sequence* SequenceTable::Find(SequenceId id) {
  const auto it = sequences_.find(id);
  return it == sequences_.end() ? nullptr : &it->second;
}

Sequence* SequenceTable::Find(SlotId slot, SequenceId id) {
  if (slot.value() >= by_slot_.size()) return nullptr;
  Sequence* const sequence = by_slot_[slot.value()];
  return sequence != nullptr && sequence->id == id ? sequence : nullptr;
}

Sequence* SequenceTable::FindRunning(RequestId request) {
  const auto it = by_request_.find(request);
  return it == by_request_.end() ? nullptr : Find(it->second);
}

const Sequence* SequenceTable::Oldest() const {
  for (const auto& [id, sequence] : sequences_) {
    if (!sequence.retiring) return &sequence;
  }
  return nullptr;
}

void SequenceTable::Preempt(Sequence& sequence) {
  PENSTOCK_CHECK(!sequence.retiring, "only a running sequence is preempted");
  sequence.retiring = true;
  sequence.preempted = true;
  ++preempted_;
  sequence.blocks.Retire(cache_);
  sequence.window.Retire(cache_);
  cache_.ReleaseSnapshot(sequence.snapshot);
  Uncount(sequence);
}

Work SequenceTable::Requeue(Sequence& sequence) {
  PENSTOCK_CHECK(sequence.preempted, "only a preempted sequence is queued again");
  by_request_.erase(sequence.request.request);
  sequence.preempted = false;
  --preempted_;
  Work work = std::move(static_cast<Work&>(sequence));
  Reclaim(sequence);
  return work;
}

void SequenceTable::Extend(Sequence& sequence, const Reservation& more) {
  PENSTOCK_CHECK(sequence.blocks.Reserve(cache_, more.blocks) &&
                     sequence.window.Claim(cache_, more.window_blocks),
                 "a reservation grows by what is available");
  sequence.reserved_tokens += more.tokens;
  reserved_tokens_ += more.tokens;
}

void SequenceTable::Retire(Sequence& sequence) {
  if (sequence.preempted) {  // its blocks and tokens were given back
    sequence.preempted = false;
    --preempted_;
    by_request_.erase(sequence.request.request);
    return;
  }
  PENSTOCK_CHECK(!sequence.retiring, "a sequence ends once");
  sequence.retiring = true;
  sequence.blocks.Retire(cache_);
  sequence.window.Retire(cache_);
  cache_.ReleaseSnapshot(sequence.snapshot);
  Uncount(sequence);
  by_request_.erase(sequence.request.request);
}

void SequenceTable::Uncount(const Sequence& sequence) {
  reserved_tokens_ -= sequence.reserved_tokens;
  if (sequence.Candidates() == 0) return;
  --contrastive_.sequences;
  contrastive_.candidates -= sequence.Candidates();
}

void SequenceTable::Reclaim(Sequence& sequence) {
  PENSTOCK_CHECK(sequence.retiring && sequence.plans_in_flight == 0,
                 "blocks are freed when no plan in flight refers to their sequence");
  sequence.blocks.Reclaim(cache_, sequence.id);
  sequence.window.Reclaim(cache_);
  if (sequence.started) {
    slots_.End(sequence.slot);
  } else {
    slots_.PutBack(sequence.slot);
  }
  by_slot_[sequence.slot.value()] = nullptr;
  if (sequence.Suspect()) --suspects_;
  sequences_.erase(sequence.id);
}

std::uint32_t SequenceTable::retiring() const {
  return static_cast<std::uint32_t>(sequences_.size()) - running();
}

}  // namespace penstock::scheduler
