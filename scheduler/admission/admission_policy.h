// Whether a request can run on a group of a given size: ever, and now. All policies have the same
// limits. They differ in what a request reserves when it is admitted:
//
//   guaranteed  its worst case: it is never preempted and never waits for memory
//   optimistic  its prompt and the output that is expected; it may be preempted
//
// A request that does not fit an empty group can never run there. It must be refused at once, since
// a waiting one would block the queue for ever. Check finds which budget has a deficit now, and
// how large it is. All are pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/group.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/kv/block_table.h"
#include "scheduler/order/waiting_request.h"
#include "scheduler/step/step_composer.h"

namespace penstock::scheduler {

class OutputLengths;

// No text of the group is longer.
struct LengthLimit {
  std::uint64_t tokens = 0;
  std::string of_what;
};

// The state of a group.
struct GroupState {
  std::uint32_t blocks_available = 0;  // free or cached, and not reserved
  std::uint32_t slots_available = 0;
  std::uint32_t running = 0;          // admitted, not ended
  std::uint32_t decode_rows = 0;      // of a step in which all of them decode without drafts
  std::uint64_t reserved_tokens = 0;  // of all running sequences
  // KV headroom: blocks that the running sequences may need beyond their reservations.
  std::uint32_t headroom = 0;
  // The same of KV group 1, which has a window.
  std::uint32_t window_blocks_available = 0;
  std::uint32_t window_headroom = 0;
  // Blocks of the request that running sequences hold already, so that they cost nothing.
  std::uint32_t blocks_shared = 0;
  // Padded KV layout: cells that the running rows and this request's rows need (PaddedLayout).
  std::uint64_t cells_needed = 0;
};

class AdmissionPolicy {
 public:
  AdmissionPolicy(const Config& config, const GroupCapacity& capacity);
  virtual ~AdmissionPolicy() = default;

  // Tokens of the prompt and of the longest output. A preemption does not change them.
  static std::uint64_t WorstCaseTokens(const Arrival& arrival);

  // Tokens that a request reserves when it is admitted: at least its prompt and its output so far,
  // at most its worst case.
  virtual std::uint64_t TokensToReserve(const Work& work) const = 0;
  // Blocks for them. In the padded KV layout blocks hold only what is prefilled.
  std::uint32_t BlocksToReserve(const Work& work) const;
  // The largest number of window blocks that a sequence of `tokens` tokens holds at any time. 0 if
  // no layer has a window.
  std::uint32_t WindowBlocksFor(std::uint64_t tokens) const {
    if (capacity_.window == 0) return 0;
    return std::min(BlocksFor(tokens, capacity_.block_size), most_window_blocks_);
  }
  // Rows of each decode of the request, without drafts.
  std::uint32_t DecodeRows(const Work& work) const;
  // The most rows of each decode of the request, drafts or forced tokens included.
  static std::uint32_t MostDecodeRows(const Config& config, const GroupCapacity& capacity,
                                      const Arrival& arrival) {
    return arrival.grammar.empty() ? config.max_decode_rows : 1 + capacity.forced_tokens;
  }
  // Whether it may be preempted while it runs.
  virtual bool MayBePreempted(const Work& work) const = 0;

  // Whether the request fits an empty group.
  bool Fits(const Arrival& arrival) const;
  // Why not. nullopt if it fits.
  std::optional<Refusal> WhyNeverFits(const Arrival& arrival) const;

  // The first budget with a deficit. The order is: batch size, slots, step tokens (a decode row for
  // every sequence), total tokens, cells, blocks of KV group 0 and of the window group.
  std::optional<Shortage> Check(const Work& work, const GroupState& state) const;

 protected:
  // Positions that a sequence can write in pipeline_depth decodes.
  std::uint32_t TokensPerPipeline(const Arrival& arrival) const {
    return config_.pipeline_depth * MostDecodeRows(config_, capacity_, arrival);
  }

 private:
  std::uint32_t MaxRunning() const;

  const Config config_;
  const GroupCapacity capacity_;
  const StepBudget step_;
  const std::uint32_t most_window_blocks_;  // of a sequence
  // The worst case of a request must be within each of these limits.
  const std::vector<LengthLimit> lengths_;
  const std::uint64_t longest_;  // the least of them
  const std::uint32_t longest_prompt_;
  const std::uint32_t most_candidates_;
};

// `lengths` must outlive the policy; optimistic admission reads it.
std::unique_ptr<AdmissionPolicy> MakeAdmissionPolicy(const Config& config,
                                                     const GroupCapacity& capacity,
                                                     const OutputLengths& lengths);

}  // namespace penstock::scheduler
