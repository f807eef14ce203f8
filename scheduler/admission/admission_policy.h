// Whether a request can run on a group of a given size at all, and whether now. The limits are the
// same for all policies; what differs is how much a request reserves when it is admitted:
//   guaranteed  its worst case: never evicted, never waits for memory
//   optimistic  its prompt and what it is expected to say; may be preempted to let others grow
//
// Two questions, both pure:
//   WhyNeverFits  can this request ever run on a group of this size? If not it must be refused at
//                 once: waiting would block the queue for ever.
//   Check         can it be admitted now, and if not, which budget is short and by how much?
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/plan/group.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class OutputLengths;

// What a group has at this moment.
struct GroupState {
  std::uint32_t blocks_available = 0;  // free or cached, and not promised
  std::uint32_t slots_available = 0;
  std::uint32_t running = 0;          // admitted, not ended
  std::uint32_t decode_rows = 0;      // of a step in which all of them decode, without drafts
  std::uint64_t reserved_tokens = 0;  // of all running
  // KV headroom: blocks that the running sequences may need beyond their reservations.
  std::uint32_t headroom = 0;
  // Of the request's blocks, those that running sequences hold already: they cost nothing.
  std::uint32_t blocks_shared = 0;
  // Padded KV layout: positions of all rows and the request's, at their greatest lengths.
  std::uint64_t padded_positions = 0;
};

class AdmissionPolicy {
 public:
  AdmissionPolicy(const Config& config, const GroupCapacity& capacity);
  virtual ~AdmissionPolicy() = default;

  // Prompt and the most that may be generated. The same before and after a preemption.
  static std::uint64_t WorstCaseTokens(const Arrival& arrival);

  // Tokens promised to a request when it is admitted; at least its prompt and what it has
  // generated, at most its worst case.
  virtual std::uint64_t TokensToReserve(const Work& work) const = 0;
  // Of these, those that blocks must hold: in the padded KV layout what is computed as a prompt.
  std::uint32_t BlocksToReserve(const Work& work) const;
  // Rows that it takes of every step in which it decodes; drafts have what is left.
  std::uint32_t DecodeRows(const Work& work) const;
  // Whether it may be preempted once it runs.
  virtual bool MayBePreempted(const Work& work) const = 0;

  // Nothing when the request fits an empty group.
  std::optional<Refusal> WhyNeverFits(const Arrival& arrival) const;

  // Room other than this step's token budget, in the order
  // batch size, slots, step tokens (a decode row for everybody), total tokens, cells, blocks.
  std::optional<Shortage> Check(const Work& work, const GroupState& state) const;

 protected:
  // Positions that plans in flight and the next one can write for a sequence that decodes.
  std::uint32_t TokensPerPipeline() const {
    return config_.pipeline_depth * config_.max_decode_rows;
  }

 private:
  std::uint32_t MaxRunning() const;

  const Config config_;
  const GroupCapacity capacity_;
};

// `lengths` is asked by optimistic admission and must outlive the policy.
std::unique_ptr<AdmissionPolicy> MakeAdmissionPolicy(const Config& config,
                                                     const GroupCapacity& capacity,
                                                     const OutputLengths& lengths);

}  // namespace penstock::scheduler
