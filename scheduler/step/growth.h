// What running sequences need beyond their reservations, and who must give way. Used under
// optimistic admission; under guaranteed admission nobody ever outgrows its reservation, so all of
// it is zero.
//
// The keep-free rule: what the running may write in the next pipeline_depth steps, as far as it
// lies outside their own reservations, stays free of new admissions; so a plan made now can follow
// the ones in flight. Where that does not hold any more, the sequence that lacks a block waits for
// a result, and others are preempted until what is free or comes back with results in flight is
// enough.
#pragma once

#include <cstdint>

#include "common/plan/group.h"
#include "scheduler/config.h"
#include "scheduler/step/sequence.h"
#include "scheduler/step/sequence_table.h"

namespace penstock::scheduler {

class AdmissionPolicy;

// Blocks and tokens (of max_batch_total_tokens) that a sequence lacks.
struct Lack {
  std::uint64_t blocks = 0;
  std::uint64_t tokens = 0;

  bool none() const { return blocks == 0 && tokens == 0; }
  Lack& operator+=(const Lack& other) {
    blocks += other.blocks;
    tokens += other.tokens;
    return *this;
  }
  Lack& operator-=(const Lack& other) {
    blocks -= other.blocks;
    tokens -= other.tokens;
    return *this;
  }
};

class Growth {
 public:
  Growth(const Config& config, const GroupCapacity& capacity)
      : config_(config), block_size_(capacity.block_size), in_cells_(capacity.cells > 0) {}

  // For its rows in the plan being made, at most `max_rows`.
  Lack OfNextDecode(const Sequence& sequence, std::uint32_t max_rows) const;
  // For all it may write in the next pipeline_depth steps, in blocks.
  std::uint64_t OfPipeline(const Sequence& sequence) const;

  // A sequence that outgrew its reservation asks for what is expected of it now, at least its lack.
  Lack Stretch(const Sequence& sequence, const Lack& lack, std::uint64_t expected_tokens) const;

  // Whether the lack can be covered now, or (`later`) when all results in flight are in.
  bool Covered(const Lack& lack, const SequenceTable& table, bool later) const;

  // Who gives way: lowest priority under Order::kPriority, then who arrived last. Null when nobody
  // may be preempted.
  Sequence* Victim(SequenceTable& table, const AdmissionPolicy& admission) const;

 private:
  Lack Beyond(const Sequence& sequence, std::uint64_t positions, std::uint64_t tokens) const;

  const Config config_;
  const std::uint32_t block_size_;
  // Rows of the padded KV layout grow in cells, which are promised for the worst case: no block is
  // ever lacking.
  const bool in_cells_;
};

}  // namespace penstock::scheduler
