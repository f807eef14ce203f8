// Memory for sequences that outgrow their reservations, under optimistic admission. Under
// guaranteed admission every reservation covers the worst case, and nothing here does anything.
//
//   KV headroom  blocks that the running sequences may write in the next pipeline_depth steps
//                beyond their reservations. New admissions leave them free, so that a plan made now
//                can follow the plans in flight.
//   deficit      what the next decode of a sequence needs beyond its reservation
//   preemption   when the deficits exceed what is free or comes back with results in flight, a
//                victim loses its blocks and is queued again
//
// Use, for each step: BeginStep, then Reserve for each sequence that decodes, then UpdateHeadroom.
// Not synchronised; one owner, the GroupScheduler.
#pragma once

#include <cstdint>
#include <optional>

#include "common/ids.h"
#include "common/plan/group.h"
#include "common/time.h"
#include "scheduler/admission/admission_policy.h"
#include "scheduler/config.h"
#include "scheduler/output.h"
#include "scheduler/step/retirement.h"
#include "scheduler/step/sequence_table.h"

namespace penstock::scheduler {

// Blocks of KV group 0 and of the window group, and tokens of max_batch_total_tokens, that are
// missing.
struct Deficit {
  std::uint64_t blocks = 0;
  std::uint64_t window_blocks = 0;
  std::uint64_t tokens = 0;

  bool none() const { return blocks == 0 && window_blocks == 0 && tokens == 0; }
  Deficit& operator+=(const Deficit& other) {
    blocks += other.blocks;
    window_blocks += other.window_blocks;
    tokens += other.tokens;
    return *this;
  }
  Deficit& operator-=(const Deficit& other) {
    blocks -= other.blocks;
    window_blocks -= other.window_blocks;
    tokens -= other.tokens;
    return *this;
  }
};

class Preemption {
 public:
  // All references must outlive the object.
  Preemption(const Config& config, const GroupUp& up, const AdmissionPolicy& admission,
             SequenceTable& table, Retirement& retirement);

  // Preempts until the next decodes of all sequences, of at most `max_rows` rows each, fit into
  // what is free or comes back with the results in flight. `step` is the step being composed.
  void BeginStep(std::uint32_t max_rows, StepId step, Time now, Outputs& out);
  // Extends the reservation of a sequence for its next decode. False: the sequence must wait for a
  // result, and so must every later one of this step that has a deficit.
  bool Reserve(Sequence& sequence, Time now, Outputs& out) {
    return deficit_.none() || Cover(sequence, now, out);  // in most steps there is none
  }
  void UpdateHeadroom();
  // Preempts a sequence that must start again (Sequence::MustRecompute), under any admission.
  void Recompute(Sequence& sequence, Time now, Outputs& out);

  // Preempts a sequence that had its quantum, for a request that is due.
  void Yield(Sequence& sequence, RequestId due, StepId step, Time now, Outputs& out);

  // Blocks that admissions leave free.
  std::uint32_t headroom() const { return headroom_; }
  std::uint32_t window_headroom() const { return window_headroom_; }

 private:
  Deficit DeficitOf(const Sequence& sequence, std::uint64_t positions, std::uint64_t tokens) const;
  Deficit DecodeDeficit(const Sequence& sequence) const;
  Deficit Extension(const Sequence& sequence, const Deficit& deficit) const;
  bool Covered(const Deficit& deficit, bool with_retiring) const;
  // What the decodes of this step run short of first; none if their deficits fit.
  bool Cover(Sequence& sequence, Time now, Outputs& out);
  Shortage Exceeded() const;
  Sequence* ChooseVictim();
  void Preempt(Sequence& victim, std::optional<RequestId> beneficiary, Time now, Outputs& out);
  void Defer(Sequence& sequence, const Deficit& deficit, Time now, Outputs& out);

  const Config config_;
  const GroupId group_;
  const std::uint32_t block_size_;
  const bool decodes_use_blocks_;
  const AdmissionPolicy& admission_;
  SequenceTable& table_;
  Retirement& retirement_;

  std::uint32_t headroom_ = 0;
  std::uint32_t window_headroom_ = 0;
  // For the step being composed.
  StepId step_;
  std::uint32_t max_rows_ = 1;
  Deficit deficit_;       // of the decodes that have not been reserved
  bool waiting_ = false;  // a decode waits for a result
};

}  // namespace penstock::scheduler
